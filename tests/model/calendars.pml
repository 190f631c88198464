/*
 * A table that is shared with programs that judge by their calendars, for
 * exhaustive checking with spin (see `run`): layouts lockclient, lease and
 * ddblock with a margin.
 *
 * What is modelled. One item, one client of ours and one of theirs, a network
 * and a service time T.
 *  - Both take, renew and release, and may stop for any while between two
 *    steps, for ever too. A request is applied at any later time, or never;
 *    ours goes on while one that it has stopped waiting for may be applied yet.
 *    (Theirs does not: an old put of its own could shorten its lease.)
 *  - Theirs has a calendar that is OFF ticks ahead (or behind, if OFF < 0). It
 *    sends what its client sends: a put of "now and a lease", on condition that
 *    there is no item, that its end is before now, or that it is its own. It
 *    holds the lock until its lease is over by its own clock (a client that
 *    goes on longer protects nobody).
 *  - Ours knows T as any interval from WE ticks before to WL after. It writes
 *    "latest, a lease and the margin", claims a lease from the sending, and
 *    takes what ended a margin before `earliest`.
 *  - Our machine stands still for PAUSE ticks in all, and nobody notices: what
 *    it knows of T is late by as much. For that a holder of ours gives up
 *    UNHELD of its lease, as in lock.pml.
 *
 * What is asserted: no_two_claims.
 *
 * What is abstracted. Which versions a renewal of ours lists is lock.pml's;
 * here there is one at a time, and a take whose answer is lost is waited out. Clocks run at one rate. The 2 s
 * for front ends that differ are taken off already. An end is compared by <=,
 * one nanosecond more generous than <, so that a tick gives no slack.
 */
#ifndef L
#define L 2 /* a lease, in ticks */
#endif
#ifndef M
#define M 1 /* the margin */
#endif
#ifndef OFF
#define OFF M /* of their calendar: the worst that is allowed */
#endif
#ifndef WE
#define WE 1
#endif
#ifndef WL
#define WL 1
#endif
#ifndef TMAX
#define TMAX 8
#endif
#ifndef A
#define A 3 /* requests of each */
#endif
#ifdef M_STORED
#define STORED 0 /* broken: the end that we store has no margin */
#else
#define STORED M
#endif
#ifdef M_JUDGED
#define JUDGED 0 /* broken: their lease is over for us without a margin */
#else
#define JUDGED M
#endif
#ifndef PAUSE
#define PAUSE 0
#endif
#if defined(M_ONEPERCENT)
#define UNHELD 0 /* broken: nothing is given up for a pause */
#elif L / 8 < PAUSE
#define UNHELD (L / 8)
#else
#define UNHELD PAUSE
#endif
#define HELD (L - UNHELD)
/* Of times that may be before the beginning. */
#define T0 (L + M + WE + PAUSE + 1)

/* Of `id`: nobody's, theirs; ours are above, one for each acquisition. */
#define NOBODY 0
#define THEIRS 1

mtype = { none, take, renew, release };

typedef Sent {
  mtype verb = none;
  byte id, end; /* what is written */
  byte before;  /* take: what ended before that is over */
  byte at;
  bool told, applied; /* the answer, once there is one */
};

byte T = T0;
byte row = NOBODY, row_end;
Sent sent[3]; /* 0, 1: ours, and given up; 2: theirs */
byte ours_until, theirs_until; /* claims; half-open */
byte our_id = THEIRS;
byte our_requests, their_requests;
byte stood_still; /* our clock */
#define OURS_NOW (T - stood_still)

#define idle(i) (sent[i].verb == none)

inline put(i, what, whose, until, over) {
  sent[i].verb = what;
  sent[i].id = whose;
  sent[i].end = until;
  sent[i].before = over;
  sent[i].at = (i == 2 -> T : OURS_NOW); /* by the sender's clock */
  sent[i].told = false;
  sent[i].applied = false
}

inline clear(i) {
  put(i, none, 0, 0, 0);
  sent[i].at = 0
}

inline tick() {
  T++;
  if :: ours_until <= OURS_NOW -> ours_until = 0 :: else fi;
  if :: theirs_until <= T -> theirs_until = 0 :: else fi
}

/* As the item is by then. Theirs takes and renews by one request. */
inline apply(i) {
  if
  :: sent[i].verb == release ->
     sent[i].applied = (row == sent[i].id);
     if
     :: sent[i].applied -> row = NOBODY; row_end = 0
     :: else
     fi
  :: sent[i].verb == renew ->
     sent[i].applied = (row == sent[i].id);
     if
     :: sent[i].applied -> row_end = sent[i].end
     :: else
     fi
  :: sent[i].verb == take ->
     sent[i].applied = (row == NOBODY || row_end <= sent[i].before ||
                        (sent[i].id == THEIRS && row == THEIRS));
     if
     :: sent[i].applied -> row = sent[i].id; row_end = sent[i].end
     :: else
     fi
  fi;
  sent[i].told = true
}

/* Stops waiting for it: it may be applied yet, and nobody hears. */
inline give_up(i) {
  put(i + 1, sent[i].verb, sent[i].id, sent[i].end, sent[i].before);
  clear(i)
}

bool no_two_claims = true;

/* After the two steps that can begin a claim. */
inline compare() {
  no_two_claims = (ours_until == 0 || theirs_until == 0);
  assert(no_two_claims)
}

active proctype world() {
  byte early, late;
end:
  do
  :: atomic { T < T0 + TMAX -> tick() }
  :: atomic { T < T0 + TMAX && stood_still < PAUSE -> stood_still++; tick() }

  /* --- The network --- */
  :: atomic { !idle(0) && !sent[0].told -> apply(0) }
  :: atomic { !idle(1) -> apply(1); clear(1) }
  :: atomic { !idle(2) && !sent[2].told -> apply(2) }

  /* --- Ours --- */
  :: atomic { idle(0) && our_requests < A ->
       our_requests++;
       select(early : 0 .. WE);
       select(late : 0 .. WL);
       if
       :: ours_until == 0 ->
          our_id++;
          put(0, take, our_id, OURS_NOW + late + L + STORED,
              OURS_NOW - early - JUDGED)
       :: ours_until > 0 && sent[1].verb != renew ->
          put(0, renew, our_id, OURS_NOW + late + L + STORED, 0)
       :: ours_until > 0 -> ours_until = 0; put(0, release, our_id, 0, 0)
       fi;
       early = 0;
       late = 0 }
  :: atomic { !idle(0) && sent[0].told ->
       if /* A claim that is over stays over; an answer too late grants none. */
       :: sent[0].applied && sent[0].at + HELD > OURS_NOW &&
            (sent[0].verb == take || (sent[0].verb == renew && ours_until > 0))
            -> ours_until = sent[0].at + HELD
       :: sent[0].verb == renew && !sent[0].applied -> ours_until = 0
       :: else
       fi;
       compare();
       clear(0) }
  :: atomic { !idle(0) && !sent[0].told && idle(1) -> give_up(0) }

  /* --- Theirs --- */
  :: atomic { idle(2) && their_requests < A ->
       their_requests++;
       if
       :: put(2, take, THEIRS, T + OFF + L, T + OFF)
       :: theirs_until > 0 -> theirs_until = 0; put(2, release, THEIRS, 0, 0)
       fi }
  :: atomic { !idle(2) && sent[2].told ->
       if
       :: sent[2].applied && sent[2].verb == take && sent[2].at + L > T ->
          theirs_until = sent[2].at + L
       :: sent[2].verb == take && !sent[2].applied -> theirs_until = 0
       :: else
       fi;
       compare();
       clear(2) }
  od
}
