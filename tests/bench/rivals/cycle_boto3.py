#!/usr/bin/python3
"""Contestant: boto3 with ddblock's two requests, a lock taken and released.

    cycle_boto3.py URL

What it is asked and answers is told in contestant.hpp.  Keys come from the
environment.
"""
import statistics
import sys
import time

import boto3


class Cycle:
    """As ddblock: PutItem, DeleteItem, each with its condition."""

    def __init__(self, url):
        self.requests = 0
        self._client = boto3.client(
            "dynamodb",
            endpoint_url=url,
            region_name="eu-west-1",
        )

    def __call__(self):
        name = {"S": "ddblock-nightly-report"}
        now = time.time_ns()
        uuid = {"S": str(now)}
        self._client.put_item(
            TableName="locks",
            Item={
                "name": name,
                "uuid": uuid,
                "expires": {"N": str(now + 60_000_000_000)},
            },
            ConditionExpression="#name <> :name OR "
            "(#name = :name AND #exp < :now)",
            ExpressionAttributeNames={"#name": "name", "#exp": "expires"},
            ExpressionAttributeValues={":name": name, ":now": {"N": str(now)}},
        )
        self._client.delete_item(
            TableName="locks",
            Key={"name": name},
            ConditionExpression="#name = :name AND #uuid = :uuid",
            ExpressionAttributeNames={"#name": "name", "#uuid": "uuid"},
            ExpressionAttributeValues={":name": name, ":uuid": uuid},
        )
        self.requests += 2


def status_of_process(name):
    with open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith(name + ":"):
                return int(line.split()[1])
    return -1


def run(cycle, warmup, cycles):
    settled = cycle.requests
    for _ in range(warmup):
        cycle()
    begin = cycle.requests
    times = []
    cpu = time.process_time_ns()
    last = time.monotonic_ns()
    for _ in range(cycles):
        cycle()
        now = time.monotonic_ns()
        times.append(now - last)
        last = now
    cpu = time.process_time_ns() - cpu
    print(cpu, statistics.median_low(times), cycle.requests - begin,
          begin - settled, 0, status_of_process("VmHWM"),
          status_of_process("Threads"), flush=True)


def main():
    if len(sys.argv) != 2:
        print("usage: cycle_boto3.py URL", file=sys.stderr)
        sys.exit(2)
    cycle = Cycle(sys.argv[1])
    for line in sys.stdin:
        warmup, cycles = map(int, line.split())
        if cycles == 0:
            print(cycle.requests, flush=True)
        else:
            run(cycle, warmup, cycles)


main()
