// Contestant: AWS's SDK for Go with ddblock's two requests, a lock taken and
// released: PutItem, DeleteItem, each with its condition.
//
//	cycle_sdk URL
//
// What it is asked and answers is told in contestant.hpp.  Keys come from the
// environment.
package main

import (
	"context"
	"fmt"
	"io"
	nethttp "net/http"
	"os"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Where a server answers before Go's transport knows that all is sent, the SDK
// closes the body too early, and the transport drops the connection.  DynamoDB
// is never so fast: here, the SDK shall not pay for it.
type keepsAlive struct{ client *http.BuildableClient }

func (k keepsAlive) Do(request *nethttp.Request) (*nethttp.Response, error) {
	request.Body = io.NopCloser(request.Body)
	return k.client.Do(request)
}

type locker struct {
	client   *dynamodb.Client
	requests uint64
}

func lockerAt(url string) *locker {
	return &locker{client: dynamodb.New(dynamodb.Options{
		Region:           "eu-west-1",
		EndpointResolver: dynamodb.EndpointResolverFromURL(url),
		HTTPClient:       keepsAlive{http.NewBuildableClient()},
		Credentials: aws.NewCredentialsCache(
			credentials.NewStaticCredentialsProvider(
				os.Getenv("AWS_ACCESS_KEY_ID"),
				os.Getenv("AWS_SECRET_ACCESS_KEY"), "")),
	})}
}

func (l *locker) cycle() {
	name := &types.AttributeValueMemberS{Value: "ddblock-nightly-report"}
	now := time.Now().UnixNano()
	number := func(n int64) *types.AttributeValueMemberN {
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
	}
	uuid := &types.AttributeValueMemberS{Value: strconv.FormatInt(now, 10)}
	_, err := l.client.PutItem(context.Background(), &dynamodb.PutItemInput{
		TableName: aws.String("locks"),
		Item: map[string]types.AttributeValue{
			"name":    name,
			"uuid":    uuid,
			"expires": number(now + int64(time.Minute)),
		},
		ConditionExpression: aws.String(
			"#name <> :name OR (#name = :name AND #exp < :now)"),
		ExpressionAttributeNames: map[string]string{
			"#name": "name", "#exp": "expires"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":name": name, ":now": number(now)},
	})
	giveUpOn(err)
	_, err = l.client.DeleteItem(context.Background(), &dynamodb.DeleteItemInput{
		TableName:           aws.String("locks"),
		Key:                 map[string]types.AttributeValue{"name": name},
		ConditionExpression: aws.String("#name = :name AND #uuid = :uuid"),
		ExpressionAttributeNames: map[string]string{
			"#name": "name", "#uuid": "uuid"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":name": name, ":uuid": uuid},
	})
	giveUpOn(err)
	l.requests += 2
}

func giveUpOn(err error) {
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "cycle_sdk:", err)
	os.Exit(1)
}

// Of all threads, those that collect garbage too.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	giveUpOn(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func statusOfProcess(name string) string {
	status, err := os.ReadFile("/proc/self/status")
	giveUpOn(err)
	_, rest, _ := strings.Cut(string(status), "\n"+name+":")
	return strings.Fields(rest)[0]
}

func (l *locker) run(warmup, cycles int) {
	settled := l.requests
	for i := 0; i < warmup; i++ {
		l.cycle()
	}
	begin := l.requests
	times := make([]time.Duration, cycles)
	cpu := cpuTime()
	last := time.Now()
	for i := range times {
		l.cycle()
		now := time.Now()
		times[i] = now.Sub(last)
		last = now
	}
	cpu = cpuTime() - cpu
	sort.Slice(times, func(a, b int) bool { return times[a] < times[b] })
	fmt.Println(cpu.Nanoseconds(), times[cycles/2].Nanoseconds(),
		l.requests-begin, begin-settled, 0, statusOfProcess("VmHWM"),
		statusOfProcess("Threads"))
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: cycle_sdk URL")
		os.Exit(2)
	}
	l := lockerAt(os.Args[1])
	var warmup, cycles int
	for {
		if _, err := fmt.Scan(&warmup, &cycles); err != nil {
			return
		}
		if cycles == 0 {
			fmt.Println(l.requests)
		} else {
			l.run(warmup, cycles)
		}
	}
}
