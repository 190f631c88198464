/*
 * The lock's protocol, for exhaustive checking with spin (see `run`).
 *
 * What is modelled. One item, N contenders, a network and a service time T.
 *  - Contender: begins a call with a fresh uuid, sends PutItem attempts until
 *    one is granted, renews by UpdateItem, releases by DeleteItem, calls again.
 *    It may stop for any while between any two of its steps, for ever too: no
 *    step is forced except that a claim ends by its clock.
 *  - Network: a contender has one request under way (slot 2i) and one it has
 *    stopped waiting for (slot 2i + 1). Either is applied at any later time,
 *    in any order, or never; DUPS of them are applied once more. An answer may
 *    be late, and is lost when the contender goes on without it. A request
 *    abandoned while another lies abandoned replaces it or is lost.
 *  - Item: uuid, stamp (`expires`) and, on kept rows, token. A stamp is a tick
 *    (rx) and the attempt's number in its low digits (rv), by which alone
 *    one uuid's stamps differ; rv = 0 is a kept row released (`expires` = 0).
 *  - Conditions: clause 1 (free), 2 (over by service time; of a kept row only
 *    if its uuid is not the take's own), 3 (pinned, PINNED) and 4 (our own
 *    write, OURS) of the take; uuid and the list of stamps for a renewal;
 *    uuid, and where the owner is constant the list, for a release.
 *  - Claim: till[i] is the instant on contender i's boot clock when
 *    owns_lock() turns false (half-open: at that instant it is), 0 for none.
 *  - Guarded write: from its grant on a contender may send what is written on
 *    the condition that the row bears its uuid, is not released and, on kept
 *    rows, has the token of the grant (GUARD). It is applied at any later time,
 *    so it is asked in every state whether it would be.
 *  - Waiter's word (WAITS): a host that has seen the row held may write that it
 *    waits, on the condition that the row bears the uuid it saw, is not
 *    released, and has no such word yet. It is applied at any later time, any
 *    number of times, or never. What the holder makes of it is a pause, which
 *    the model has anyway.
 *
 * Which rule is where. send: a stamp and a send time for every attempt; match,
 * deadline: our own record, its time counted from the matching attempt's send;
 * observe, tick: a waiter's time counted from the receipt, pinned by (uuid,
 * stamp); recv_acq, recv_renew: late answers; recv_acq with RST: on kept rows
 * the renewal before the grant where a take after the one that was applied may
 * be applied yet (SETTLED); set_mask: which stamps are listed; recv_release:
 * what a refused release means, and that after the end of the claim that it
 * releases (rtill) it means no loss.
 *
 * What is asserted, each by a name of its own: no_two_claims (what the lock is
 * for), no_revived_hold (a claim once over stays over), no_false_loss (a holder
 * whose row nobody else changed, or nobody before the end of the claim that it
 * releases, is not told taken or deleted), no_false_refusal
 * (while a claim stands and nobody took the row, a guarded write goes through),
 * no_own_refusal (no take is refused because of the very version of its own
 * that its call was told the row bears), no_stray_word (a word that
 * nobody would read), and on kept rows no_repeated_token
 * (tokens of successive holders rise), no_late_write (no guarded write goes
 * through once another was granted the lock since its sender's grant) and
 * no_undone_release (no take takes the row that its own call has released).
 * model_sane guards the model itself.
 *
 * What is abstracted. Clause 2 compares with <=, one nanosecond more generous
 * than <, so that a tick's width gives no slack. The service clock of a
 * contender is, at each use, any interval within WE ticks before and WL after
 * the true time, free to move either way between uses; the 2 s for differing
 * front ends are taken off already (M_NOMARGIN: they are not). Between two
 * steps nothing sees a contender's state, so a step is atomic: time that
 * passes within it is time that passes before or after it. Giving up a wait
 * for an answer and the next sending are one step, since nobody can tell them
 * apart. The rule that a claim ends when the service's clock may have reached
 * the row's stamp is left out: it only shortens claims. A GetItem is one step that reads the row or the record before it, which is
 * what an old answer arriving late would show. A crash is a stop for ever. A
 * leftover is awaited by the contender itself; its uuid is its own, so another
 * call beside it is just another contender.
 *
 * What is bounded. T up to TMAX, A attempts a call (B for contenders other
 * than 0), CALLS0 and CALLS calls, DUPS second deliveries, one abandoned
 * request a contender, PAUSE of each contender.
 *
 * What is forgotten, to have fewer states, is what can have no effect any
 * more: an observation that cannot ripen before TMAX, the send time of an
 * attempt that is too old to grant, the abandoned renewal or release of a uuid
 * that can never be in the row again. SYM lets equal contenders start in order.
 *
 * Settings, each a #define: KEPT (rows kept), CHANGES (renewals and releases of
 * a holder write what is guarded; TOKENS: they ask for the token too),
 * OWNER_CONST (uuid the same in each call, stamps
 * numbered through the process, and neither rule of kept rows that goes by the
 * uuid's being fresh), POLL (GetItem, stale reads),
 * LEFTOVERS, SHORT_LISTS (not all that was sent is listed: by a renewal the
 * stamp that the row is known to bear, by a take that one, or else the first,
 * and the last),
 * LEASES (contender 0's lease is a tick longer), RATE=R (boot clocks of rate
 * 1 - 1/R, 1 or 1 + 1/R, the margins 1/R), PAUSE=P (the boot clock of each stops
 * for P ticks in all, and nobody ever notices: its claims count, and what it
 * knows of the service's clock is late by as much; P ticks are the longest
 * pause that no answer shows, so that a lease of 10 s has 8 P; a holder gives
 * up UNHELD for it, the waiters' 1 % is left out; with RATE clocks run wrong or
 * stop, BOTH: or both at once; OPEN=O: two may claim for O ticks in all, which
 * is what a shorter lease leaves open), WAITS (waiters' words). M_...: mutants.
 */
/* bounds */
#ifndef N
#define N 2
#endif
#ifndef A
#define A 3
#endif
#ifndef B
#define B A
#endif
#define MAXA(i) (i == 0 -> A : B)
#ifndef CALLS0
#define CALLS0 1
#endif
#ifndef CALLS
#define CALLS 1
#endif
#ifndef L
#define L 2
#endif
#ifndef TMAX
#define TMAX 5
#endif
#ifndef WL
#define WL 0
#endif
#ifndef WE
#define WE 0
#endif
#ifndef DUPS
#define DUPS 1
#endif
#ifndef RELS
#define RELS 1
#endif

/* time */
#if defined(LEASES)
#define TTL(i) (i == 0 -> L + 1 : L)
#else
#define TTL(i) L
#endif
#if defined(PAUSE)
#if defined(M_ONEPERCENT)
#define UNHELD 0
#elif L / 8 < PAUSE
#define UNHELD (L / 8)
#else
#define UNHELD PAUSE
#endif
#else
#define UNHELD 0
#endif
#if defined(PAUSE)
byte off[N]; /* for so long the boot clock has stood still */
#define RUN(i, t) (t - off[i])
#else
#define RUN(i, t) t
#endif
#if defined(RATE)
#define NOW(i) (RUN(i, T) * rate[i])
#define NOW_MAX(i) (RUN(i, TMAX) * rate[i])
byte rate[N];
#if defined(M_HOLDMARGIN)
#define HOLD_LEN(i) (L * RATE)
#elif defined(M_HOLDLESS)
#define HOLD_LEN(i) (L * (RATE - 1) + 1)
#elif UNHELD * RATE > L
#define HOLD_LEN(i) ((L - UNHELD) * RATE)
#else
#define HOLD_LEN(i) (L * (RATE - 1))
#endif
#if defined(M_WAITMARGIN)
#define WAIT_LEN(i, u) (L * RATE)
#elif defined(M_WAITLESS)
#define WAIT_LEN(i, u) ((L - 1) * (RATE + 1))
#else
#define WAIT_LEN(i, u) (L * (RATE + 1))
#endif
#else
#define NOW(i) RUN(i, T)
#define NOW_MAX(i) RUN(i, TMAX)
#define HOLD_LEN(i) (TTL(i) - UNHELD)
#if defined(M_WAIT)
#define WAIT_LEN(i, u) (TTL(OWNER(u)) - 1)
#elif defined(M_OWNLEASE)
#define WAIT_LEN(i, u) TTL(i)
#else
#define WAIT_LEN(i, u) TTL(OWNER(u))
#endif
#endif
#define UNRIPE(i, u) (NOW_MAX(i) - WAIT_LEN(i, u))
#define GONE 255
#if CALLS0 > CALLS
#define UMAX CALLS0
#else
#define UMAX CALLS
#endif
#define MAXC(i) (i == 0 -> CALLS0 : CALLS)
#if defined(OWNER_CONST) || defined(M_REUSE)
#define U(i) (i + 1)
#define OWNER(u) ((u) - 1)
#else
#define U(i) (i * UMAX + call[i])
#define OWNER(u) ((u - 1) / UMAX)
#endif
#if defined(OWNER_CONST)
#define BASE(i) base[i]
byte base[N];
#else
#define BASE(i) 0
#endif
#define ST(i, a) st[i * A + a - 1]
#if defined(M_EQUAL)
#define VER(i, a) sx[i * A + a - 1]
#define STAMPS
#else
#define VER(i, a) (BASE(i) + a)
#endif

#ifdef SYM
#define TURN(i) (i == 0 || call[i - 1] > 0)
#else
#define TURN(i) true
#endif
#define OURS(s) (ru == q_u[s] && (q_m[s] & (1 << rv)))

/* rows that are kept, by owners that are fresh for each call */
#if defined(KEPT) && !defined(OWNER_CONST)
#if !defined(M_OWNOVER)
#define NOT_OWN(s) && ru != q_u[s]
#endif
#if !defined(M_UNSETTLED)
#define SETTLES
#endif
#endif
#ifndef NOT_OWN
#define NOT_OWN(s)
#endif
#ifdef SETTLES
#define SETTLED(i) (c == k[i])
#else
#define SETTLED(i) true
#endif

/* what a guarded write asks of the row */
#if defined(KEPT) && !defined(M_NOTOKEN)
#define GUARD(i) (ru == gu[i] && rv != 0 && rt == gt[i])
#else
#define GUARD(i) (ru == gu[i] && rv != 0)
#endif
#if defined(M_UNPINNED)
#define PINNED(s) (q_pu[s] != 0)
#elif defined(M_PINUUID)
#define PINNED(s) (q_pu[s] != 0 && ru == q_pu[s])
#else
#define PINNED(s) (q_pu[s] != 0 && ru == q_pu[s] && rv == q_pv[s])
#endif

#define FLOOR(a, b) (a >= b -> a - b : 0)
#if defined(M_SWAP)
#define STAMP(i) (FLOOR(T, e) + TTL(i))
#define EARLIEST(i) (T + w)
#elif defined(M_NOMARGIN)
#define STAMP(i) (T + w + TTL(i))
#define EARLIEST(i) (T + 1)
#else
#define STAMP(i) (RUN(i, T) + w + TTL(i))
#define EARLIEST(i) FLOOR(RUN(i, T), e)
#endif

#define IDLE 0
#define ACQ 1
#define ACQW 2
#define LEFT 3
#define RST 4
#define RSTW 5
#define HOLD 6
#define HOLDW 7
#define RELW 8

#define PUT 1
#define UPD 2
#define DEL 3
#define OK 1
#define NO 2

byte T;
/* the row */
byte ru, rv, rx;
#ifdef KEPT
byte rt, last_token;
#endif
#if defined(POLL)
byte pu, pv; /* the record before this one: what a stale read may show */
#ifdef KEPT
byte pt;
#endif
#endif
/* requests on their way: 2i the one under way, 2i+1 an abandoned one */
byte q_kind[6], q_u[6], q_v[2 * N], q_x[2 * N], q_e[2 * N];
byte q_pu[2 * N], q_pv[2 * N];
short q_m[2 * N];
byte dups = DUPS;
#ifdef WAITS
/* a waiter's word: the version that the waiter saw; the row has one */
byte wu, wv, wx;
bool word;
#endif
/* contenders */
byte ph[N], call[N], k[N], conf[N], till[N], st[N * A];
byte ou[N], ov[N], since[N];
byte an[N], au[N], av[N];
#ifdef KEPT
byte at[N];
#endif
#ifdef STAMPS
byte sx[N * A];
#endif
byte rk[N];
bool foul[N];
/* the end of the claim that is being released; the row was changed before */
byte rtill[N];
bool robbed[N];
#if defined(C_LATE) || defined(C_REFUSED)
#define GUARDS
/* the last grant: its uuid, its token, whether another's came after it */
byte gu[N];
#ifdef KEPT
byte gt[N];
#endif
bool gl[N];
#endif
#ifdef M_NOJOIN
byte ghost[N];
#endif
byte w, e, c, j, d;
#ifndef OPEN
#define OPEN 0
#endif
byte overlapped; /* for so many ticks two have claimed */
bool keep, hit, again, over, stale;
bool no_two_claims = true, no_revived_hold = true, no_false_loss = true;
bool no_repeated_token = true, no_false_refusal = true, no_late_write = true;
bool no_undone_release = true;
bool no_own_refusal = true, no_stray_word = true, model_sane = true;

inline choose_clock(i) {
  if
  :: w = 0
#if WL > 0
  :: w = 1
#endif
#if WL > 1
  :: w = 2
#endif
  fi;
  if
  :: e = 0
#if WE > 0
  :: e = 1
#endif
#if WE > 1
  :: e = 2
#endif
  fi
}

inline choose_keep(i) {
  if
  :: keep = true
  :: q_kind[2 * i] != 0 && q_kind[2 * i + 1] != 0 -> keep = false
  fi
}

inline clear(s) {
  q_kind[s] = 0; q_u[s] = 0; q_v[s] = 0; q_x[s] = 0; q_e[s] = 0;
  q_pu[s] = 0; q_pv[s] = 0; q_m[s] = 0
}

inline end_wait(i) {
  an[i] = 0; au[i] = 0; av[i] = 0;
#ifdef KEPT
  at[i] = 0;
#endif
  if
  :: q_kind[2 * i] != 0 && keep ->
    q_kind[2 * i + 1] = q_kind[2 * i]; q_u[2 * i + 1] = q_u[2 * i];
    q_v[2 * i + 1] = q_v[2 * i]; q_x[2 * i + 1] = q_x[2 * i];
    q_e[2 * i + 1] = q_e[2 * i]; q_pu[2 * i + 1] = q_pu[2 * i];
    q_pv[2 * i + 1] = q_pv[2 * i]; q_m[2 * i + 1] = q_m[2 * i]
  :: else
  fi;
  clear(2 * i);
  keep = false
}

inline set_mask(i, from) {
  q_m[2 * i] = 0; j = from;
#ifdef SHORT_LISTS
  if
  :: q_kind[2 * i] == PUT && k[i] > 1 ->
#ifndef M_LASTLISTED
    j = (conf[i] != 0 -> conf[i] : 1);
    q_m[2 * i] = 1 << VER(i, j);
#endif
    j = k[i] - 1
  :: else
  fi;
#endif
  do
  :: j <= k[i] && j >= 1 && j != k[i] + (q_kind[2 * i] == DEL) ->
    q_m[2 * i] = q_m[2 * i] | (1 << VER(i, j)); j++;
#ifdef SHORT_LISTS
    break
#endif
  :: else -> break
  od;
  j = 0
}

#ifdef TOKENS
#define TOKEN_RIGHT(s) (q_pu[s] == 0 || rt == q_pu[s])
#else
#define TOKEN_RIGHT(s) true
#endif
inline ask_token(i) {
#ifdef TOKENS /* what pins a take is free in other requests */
  q_pu[2 * i] = (gu[i] == U(i) -> gt[i] : 0)
#else
  skip
#endif
}

inline send(i, kind) {
  k[i]++;
  ST(i, k[i]) = NOW(i);
  q_kind[2 * i] = kind;
  q_u[2 * i] = U(i);
  q_x[2 * i] = STAMP(i);
#ifdef STAMPS
  sx[i * A + k[i] - 1] = q_x[2 * i];
#endif
  q_v[2 * i] = VER(i, k[i]);
  if
  :: kind == PUT ->
    q_e[2 * i] = EARLIEST(i);
    if
    :: since[i] == GONE -> q_pu[2 * i] = ou[i]; q_pv[2 * i] = ov[i]
    :: else
    fi;
    set_mask(i, 1);
    ph[i] = ACQW
  :: else ->
    set_mask(i, conf[i]);
    ask_token(i);
    ph[i] = (ph[i] == RST || ph[i] == RSTW -> RSTW : HOLDW)
  fi;
  printf("T=%d: contender %d sends kind %d, attempt %d, stamp %d\n", T, i, kind,
         k[i], q_x[2 * i]);
  w = 0; e = 0
}

inline send_del(i) {
  q_kind[2 * i] = DEL; q_u[2 * i] = U(i);
  ask_token(i);
#ifdef OWNER_CONST
  set_mask(i, conf[i]);
#endif
  rk[i]++;
  printf("T=%d: contender %d releases\n", T, i);
  ph[i] = RELW
}

inline go_idle(i) {
  ph[i] = IDLE; till[i] = 0; conf[i] = 0; rk[i] = 0; foul[i] = false;
  rtill[i] = 0; robbed[i] = false;
#ifdef OWNER_CONST
  base[i] = base[i] + k[i];
#endif
  j = 1;
  do
  :: j <= k[i] ->
    ST(i, j) = 0;
#ifdef STAMPS
    sx[i * A + j - 1] = 0;
#endif
    j++
  :: else -> break
  od;
  j = 0;
  k[i] = 0;
  if
  :: call[i] == MAXC(i) -> ou[i] = 0; ov[i] = 0; since[i] = 0
  :: else
  fi
}

/* c: which of our attempts of this call the answer speaks of, 0: none */
inline match(i) {
  c = 0;
  if
  :: an[i] == OK -> c = k[i]
#ifndef M_NORECOGNISE
#ifdef M_EQUAL
  :: an[i] == NO && au[i] == U(i) ->
    j = 1;
    do
    :: j <= k[i] -> if :: sx[i * A + j - 1] == av[i] -> c = j :: else fi; j++
    :: else -> break
    od;
    j = 0
#else
  :: an[i] == NO && au[i] == U(i) && av[i] > BASE(i) &&
     av[i] <= BASE(i) + k[i] -> c = av[i] - BASE(i)
#endif
#endif
  :: else
  fi
}

/* d: the end of the claim that attempt c gives, 0 if it is over */
inline deadline(i) {
#if defined(M_ANSWER)
  d = NOW(i) + HOLD_LEN(i);
#elif defined(M_LAST)
  d = (ST(i, k[i]) == GONE -> 0 : ST(i, k[i]) + HOLD_LEN(i));
#else
  d = (ST(i, c) == GONE -> 0 : ST(i, c) + HOLD_LEN(i));
#endif
}

#define COUNTS(i) (till[i] != 0)
inline check_claims() {
#ifdef C_CLAIMS
  j = 0; d = 0;
  do
  :: j < N -> if :: COUNTS(j) -> d++ :: else fi; j++
  :: else -> break
  od;
  j = 0;
  no_two_claims = (d <= 1 || overlapped < OPEN);
  d = 0;
  assert(no_two_claims)
#else
  skip
#endif
}

/* in every state: a holder's guarded write would go through, and none of one
 * after whose grant another was granted the lock */
inline check_guards() {
#ifdef GUARDS
  j = 0;
  do
  :: j < N ->
#ifdef C_REFUSED
    no_false_refusal = (no_false_refusal &&
                        (!COUNTS(j) || foul[j] || GUARD(j)));
#endif
#ifdef C_LATE
    no_late_write = (no_late_write && (!gl[j] || !GUARD(j)));
#endif
    j++
  :: else -> break
  od;
  j = 0;
#ifdef C_REFUSED
  assert(no_false_refusal);
#endif
#ifdef C_LATE
  assert(no_late_write);
#endif
#endif
  skip
}

inline note_grant(i) {
#ifdef GUARDS
  j = 0;
  do
  :: j < N -> gl[j] = (j != i && gu[j] != 0); j++
  :: else -> break
  od;
  j = 0;
  gu[i] = U(i);
#ifdef KEPT
  gt[i] = at[i];
#endif
#endif
  skip
}

inline confirm(i) {
  model_sane = (c >= conf[i] || till[i] == 0);
  assert(model_sane);
  conf[i] = c; till[i] = d;
  j = 1;
  do
  :: j < c ->
    ST(i, j) = 0;
#ifdef STAMPS
    sx[i * A + j - 1] = 0;
#endif
    j++
  :: else -> break
  od;
  j = 0;
  printf("T=%d: contender %d holds until %d by attempt %d\n", T, i, till[i],
         conf[i]);
  ph[i] = HOLD
}

inline observe(i) {
  if
  :: au[i] == 0 -> ou[i] = 0; ov[i] = 0; since[i] = 0
#ifdef M_OBSKEEP
  :: au[i] != 0 && au[i] == ou[i] -> ov[i] = av[i]
#else
  :: au[i] != 0 && au[i] == ou[i] && av[i] == ov[i]
#endif
  :: else ->
    ou[i] = au[i]; ov[i] = av[i];
#ifdef M_OBSSEND
    since[i] = ST(i, k[i]);
#else
    since[i] = NOW(i);
#endif
    if
    :: since[i] != GONE && since[i] > UNRIPE(i, ou[i]) ->
      ou[i] = 0; ov[i] = 0; since[i] = 0
    :: else
    fi
  fi
}

inline recv_acq(i) {
  match(i);
  if
  :: c > 0 ->
    deadline(i);
    if
    :: d > NOW(i) && SETTLED(i) ->
#ifdef KEPT
#ifdef C_TOKEN
      no_repeated_token = (at[i] > last_token);
      assert(no_repeated_token);
#endif
      last_token = at[i];
#endif
      note_grant(i);
      confirm(i)
#ifdef SETTLES
    :: !SETTLED(i) -> conf[i] = c; ph[i] = RST
#endif
    :: else -> ph[i] = (ph[i] == RSTW -> RST : ACQ);
#ifdef SHORT_LISTS
      conf[i] = c
#endif
    fi
  :: else -> observe(i); ph[i] = ACQ; conf[i] = 0
  fi;
  c = 0; d = 0;
  end_wait(i);
  check_claims();
  check_guards();
  if
  :: (ph[i] == ACQ || ph[i] == RST) && k[i] == MAXA(i) -> go_idle(i)
  :: else
  fi
}

inline lost(i) {
#ifdef C_LOSS
  no_false_loss = (till[i] == 0 || foul[i]);
  assert(no_false_loss);
#endif
  till[i] = 0; ph[i] = HOLD
}

inline recv_renew(i) {
  match(i);
  if
  :: c > 0 ->
    deadline(i);
    if
#ifdef M_LATE
    :: true ->
#else
    :: till[i] != 0 && d > NOW(i) ->
#endif
#ifdef C_REVIVE
      no_revived_hold = (till[i] != 0);
      assert(no_revived_hold);
#endif
      confirm(i)
    :: else -> till[i] = 0; ph[i] = HOLD
    fi
  :: else -> lost(i)
  fi;
  c = 0; d = 0;
  end_wait(i);
  check_claims()
}

#define TOLD_LOST(i) (an[i] == NO && rk[i] <= 1 && rtill[i] != 0)
inline recv_release(i) {
#ifdef C_LOSS
  no_false_loss = (!TOLD_LOST(i) || robbed[i]);
  assert(no_false_loss);
#endif
  end_wait(i);
  go_idle(i)
}

/* an abandoned UPD or DEL that can never find its uuid again is forgotten */
#define MAY_PUT(m) (q_kind[m] == PUT && q_u[m] == q_u[j])
#define PAST_PUT(i) (ph[i] >= HOLD || ph[i] == IDLE)
#if defined(OWNER_CONST) || defined(M_REUSE)
#define NO_MORE_PUT(i) (call[i] == MAXC(i) && PAST_PUT(i))
#else
#define NO_MORE_PUT(i) (q_u[j] != U(i) || PAST_PUT(i))
#endif
#if defined(KEPT) && !defined(M_NOTOKEN) && !defined(CHANGES)
#define NO_MORE_GUARD(j) (rt > gt[j])
#else
#define MAY_BEAR(m) (q_kind[m] == PUT && q_u[m] == gu[j])
#define NO_MORE_GUARD(j) (ru != gu[j] && gl[j] && \
    (gu[j] != U(j) || PAST_PUT(j)) && \
    !MAY_BEAR(0) && !MAY_BEAR(1) && !MAY_BEAR(2) && !MAY_BEAR(3) && \
    !MAY_BEAR(4) && !MAY_BEAR(5))
#endif
/* a guarded write that can never go through again is forgotten */
inline purge_guards() {
#ifdef GUARDS
  j = 0;
  do
  :: j < N ->
    if
    :: gu[j] != 0 && NO_MORE_GUARD(j) ->
      gu[j] = 0; gl[j] = false;
#ifdef KEPT
      gt[j] = 0
#endif
    :: else
    fi;
    j++
  :: else -> break
  od;
  j = 0
#endif
  skip
}

inline purge() {
  j = 0;
  do
  :: j < 2 * N ->
    if
    :: q_kind[j] > PUT && j % 2 == 1 &&
       ru != q_u[j] && NO_MORE_PUT((j / 2)) &&
       !MAY_PUT(0) && !MAY_PUT(1) && !MAY_PUT(2) && !MAY_PUT(3) &&
       !MAY_PUT(4) && !MAY_PUT(5) ->
      clear(j)
    :: else
    fi;
    j++
  :: else -> break
  od;
  j = 0
}

/* a word changes no version */
inline say_waiting() {
#ifdef WAITS
  if
#if defined(M_WORDONFREE)
  :: ru == wu && !word -> word = true;
#else
  :: ru == wu && rv != 0 && !word -> word = true;
#endif
#ifdef M_WORDSTAMPS
    rv = wv; rx = wx;
#endif
    printf("T=%d: the row of uuid %d says that a host waits\n", T, ru)
  :: else
  fi;
#ifdef C_WORD
  no_stray_word = (!word || (ru != 0 && rv != 0));
  assert(no_stray_word);
#endif
  if
  :: again
  :: else -> wu = 0; wv = 0; wx = 0
  fi;
  again = false;
  check_guards();
  purge();
  purge_guards()
#else
  skip
#endif
}

#define KNOWN_OWNER

inline remember_row() {
#if defined(POLL)
  pu = ru; pv = rv;
#ifdef KEPT
  pt = rt;
#endif
#endif
  skip
}

/* a claim, or the one that is being released */
#define STANDS(i) (till[i] != 0 || (rtill[i] != 0 && NOW(i) < rtill[i]))
#define AWAITS(i) (ph[i] == ACQW || ph[i] == LEFT || ph[i] == RSTW || \
    ph[i] == HOLDW || ph[i] == RELW)
inline apply(s, i) {
  hit = false;
  if
  :: q_kind[s] == PUT ->
    hit = (ru == 0 || (rx <= q_e[s] NOT_OWN(s)) || PINNED(s) || OURS(s))
  :: q_kind[s] == UPD ->
#ifdef M_RENUUID
    hit = (ru == q_u[s])
#else
    hit = (ru == q_u[s] && (q_m[s] & (1 << rv)) && TOKEN_RIGHT(s))
#endif
  :: q_kind[s] == DEL ->
#if defined(OWNER_CONST) && !defined(M_RELUUID)
    hit = OURS(s)
#elif defined(TOKENS)
    hit = (ru == q_u[s] && TOKEN_RIGHT(s))
#else
    hit = (ru == q_u[s])
#endif
  fi;
  printf("T=%d: kind %d of uuid %d, stamp %d.%d, reaches row %d, %d.%d: %d\n",
         T, q_kind[s], q_u[s], q_x[s], q_v[s], ru, rx, rv, hit);
  if
  :: s == 2 * i && AWAITS(i) &&
     (an[i] == 0 || over) ->
    an[i] = (hit -> OK : NO);
    if
    :: hit -> au[i] = 0; av[i] = 0;
#ifdef KEPT
      at[i] = rt + (q_kind[s] == PUT)
#endif
    :: else -> au[i] = ru; av[i] = rv;
#ifdef KEPT
      at[i] = rt
#endif
    fi
  :: else
  fi;
#ifdef C_OWN
  no_own_refusal = (hit || q_kind[s] != PUT || s != 2 * i || conf[i] == 0 ||
                    ru != U(i) || rv != VER(i, conf[i]));
  assert(no_own_refusal);
#endif
  if
  :: hit ->
    if
#if defined(C_LOSS) || defined(C_REFUSED)
    :: ru != 0 && ru != q_u[s] KNOWN_OWNER -> j = OWNER(ru);
      foul[j] = (foul[j] || (ru == U(j) && ph[j] != IDLE));
      robbed[j] = (robbed[j] || (ru == U(j) && STANDS(j))); j = 0
#endif
    :: else
    fi;
    remember_row();
#ifdef WAITS
    word = (word && q_kind[s] == UPD);
#endif
#ifdef C_UNDONE
    no_undone_release = !(q_kind[s] == PUT && ru == q_u[s] && rv == 0);
    assert(no_undone_release);
#endif
#if defined(CHANGES) && defined(C_LATE)
    no_late_write = !(q_kind[s] != PUT && q_u[s] == gu[i] && gl[i]);
    assert(no_late_write);
#endif
    if
    :: q_kind[s] == DEL ->
#if defined(KEPT) && !defined(M_KEPTDEL)
      rv = 0; rx = 0
#else
      ru = 0; rv = 0; rx = 0;
#ifdef KEPT
      rt = 0
#endif
#endif
    :: else ->
#ifdef KEPT
      rt = rt + (q_kind[s] == PUT);
#endif
      ru = q_u[s]; rv = q_v[s]; rx = q_x[s]
    fi
  :: else
  fi;
  if
  :: again -> dups--
  :: else -> clear(s)
  fi;
  check_guards();
  purge();
  purge_guards();
  hit = false; again = false; over = false
}

#define MAY_CALL(i) (call[i] < MAXC(i) && ph[i] != HOLDW && ph[i] != RST && \
    ph[i] != RSTW && till[i] == 0)

proctype Contender(byte i) {
end:
  do
  :: atomic { /* a call begins: a fresh uuid, its first attempt */
    MAY_CALL(i) && TURN(i) -> choose_clock(i); choose_keep(i);
    d_step { end_wait(i); go_idle(i); call[i]++; send(i, PUT) } }
  :: atomic { /* a further attempt */
    (ph[i] == ACQ || ph[i] == ACQW) && k[i] < MAXA(i) ->
    choose_clock(i); choose_keep(i);
    d_step { end_wait(i); send(i, PUT) } }
  :: atomic { (ph[i] == ACQW || ph[i] == RSTW) && an[i] != 0 ->
    choose_keep(i);
    d_step { recv_acq(i) } }
#ifdef POLL
  :: atomic { /* a GetItem: what it read may be out of date on arrival */
    ph[i] == ACQ || ph[i] == ACQW -> choose_keep(i);
    if
    :: stale = false
    :: stale = true
    fi;
    d_step { end_wait(i); an[i] = NO;
      if
      :: stale -> au[i] = pu; av[i] = pv;
#ifdef KEPT
        at[i] = pt
#endif
      :: else -> au[i] = ru; av[i] = rv;
#ifdef KEPT
        at[i] = rt
#endif
      fi;
      stale = false; recv_acq(i) } }
#endif
#ifdef SETTLES
  :: atomic { /* settle the token */
    (ph[i] == RST || ph[i] == RSTW) && k[i] < MAXA(i) ->
    choose_clock(i); choose_keep(i);
    d_step { end_wait(i); send(i, UPD) } }
  :: atomic { ph[i] == RST || ph[i] == RSTW -> choose_keep(i);
    d_step { end_wait(i); rk[i] = 1; send_del(i) } }
#endif
#ifdef LEFTOVERS
  :: d_step { /* given up while a request is under way */
    ph[i] == ACQW -> ph[i] = LEFT }
  :: atomic { ph[i] == LEFT && an[i] != 0 -> choose_keep(i);
    d_step { match(i);
      if
      :: c > 0 -> conf[i] = c; end_wait(i); rk[i] = 1; send_del(i)
      :: else -> end_wait(i); go_idle(i)
      fi;
      c = 0 } }
#endif
  :: atomic { /* renew */
    (ph[i] == HOLD || ph[i] == HOLDW) && till[i] != 0 && k[i] < MAXA(i) ->
    choose_clock(i); choose_keep(i);
    d_step { end_wait(i); send(i, UPD) } }
  :: atomic { ph[i] == HOLDW && an[i] != 0 -> choose_keep(i);
   
    d_step { recv_renew(i) } }
  :: atomic { /* release, joining a renewal under way */
    ph[i] == HOLD || ph[i] == HOLDW -> choose_keep(i);
    d_step {
#ifdef M_NOJOIN
      if :: an[i] == OK -> ghost[i] = k[i] :: else fi;
#endif
#ifdef C_LOSS
      rtill[i] = till[i];
#endif
      till[i] = 0;
      end_wait(i); send_del(i) } }
  :: atomic { ph[i] == RELW && an[i] != 0 -> choose_keep(i);
    d_step { recv_release(i) } }
#if RELS > 1
  :: atomic { ph[i] == RELW && rk[i] < RELS -> choose_keep(i);
    d_step { end_wait(i); send_del(i) } }
#endif
#ifdef M_NOJOIN
  :: d_step { ghost[i] != 0 && ph[i] == RELW ->
    if
    :: ST(i, ghost[i]) != GONE -> till[i] = ST(i, ghost[i]) + HOLD_LEN(i);
#ifdef C_REVIVE
      no_revived_hold = false; assert(no_revived_hold);
#endif
      check_claims()
    :: else
    fi;
    ghost[i] = 0 }
#endif
  od
}

/* what two claim now they will have claimed for a tick */
inline count_overlap() {
#if OPEN > 0
  j = 0; d = 0;
  do
  :: j < N -> if :: COUNTS(j) -> d++ :: else fi; j++
  :: else -> break
  od;
  j = 0;
  overlapped = overlapped + (d > 1); d = 0
#else
  skip
#endif
}

/* RATE: of clocks that run true, unless BOTH */
#if !defined(RATE) || defined(BOTH)
#define MAY_PAUSE(i) (off[i] < PAUSE)
#elif N == 2
#define MAY_PAUSE(i) (off[i] < PAUSE && rate[0] == RATE && rate[1] == RATE)
#endif
#if N > 2
#define ANY_MAY_PAUSE (MAY_PAUSE(0) || MAY_PAUSE(1) || MAY_PAUSE(2))
#else
#define ANY_MAY_PAUSE (MAY_PAUSE(0) || MAY_PAUSE(1))
#endif

#define MAY_GO
inline tick() {
    count_overlap();
    T++; s = 0;
    do
    :: s < N ->
      if :: till[s] != 0 && NOW(s) >= till[s] -> till[s] = 0 :: else fi;
#ifndef M_LAPSED
      if :: rtill[s] != 0 && NOW(s) >= rtill[s] -> rtill[s] = 0 :: else fi;
#endif
      if
      :: ou[s] != 0 && since[s] != GONE &&
         NOW(s) - since[s] >= WAIT_LEN(s, ou[s]) -> since[s] = GONE
      :: else
      fi;
      j = 1;
      do
      :: j <= k[s] ->
        if
        :: ST(s, j) != GONE && j >= conf[s] MAY_GO &&
           NOW(s) >= ST(s, j) + HOLD_LEN(s) -> ST(s, j) = GONE
        :: else
        fi;
        j++
      :: else -> break
      od;
      j = 0;
      s++
    :: else -> break
    od;
    s = 0;
#if OPEN > 0
    check_claims()
#endif
}

#ifdef M_RESEND
#define RESENT(s) true
#else
#define RESENT(s) (q_kind[s] != DEL)
#endif

proctype World() {
  byte s;
end:
  do
  :: d_step { T < TMAX -> tick() }
#ifdef PAUSE
  :: atomic { /* a machine stands still for a tick */
    T < TMAX && ANY_MAY_PAUSE ->
    if
    :: MAY_PAUSE(0) -> s = 0
    :: MAY_PAUSE(1) -> s = 1
#if N > 2
    :: MAY_PAUSE(2) -> s = 2
#endif
    fi;
    d_step {
      printf("T=%d: contender %d stands still\n", T, s);
      off[s]++; tick() } }
#endif
#ifdef WAITS
  :: d_step { wu == 0 && rv != 0 ->
    wu = ru;
#ifdef M_WORDSTAMPS
    wv = rv; wx = rx
#endif
  }
  :: atomic { wu != 0 ->
    if
    :: again = false
    :: again = true
    fi;
    d_step { say_waiting() } }
  :: d_step { wu != 0 -> wu = 0; wv = 0; wx = 0 }
#endif
  :: atomic {
    if
    :: q_kind[0] != 0 -> s = 0
    :: q_kind[1] != 0 -> s = 1
    :: q_kind[2] != 0 -> s = 2
    :: q_kind[3] != 0 -> s = 3
#if N > 2
    :: q_kind[4] != 0 -> s = 4
    :: q_kind[5] != 0 -> s = 5
#endif
    fi;
    if
    :: again = false
    :: dups > 0 -> again = true
    fi;
    if
    :: over = false
    :: s % 2 == 0 && an[s / 2] != 0 && RESENT(s) -> over = true
    fi;
    d_step { apply(s, (s / 2)); s = 0 } }
  od
}

init {
  byte s;
  atomic {
    s = 0;
    do
    :: s < N ->
#ifdef RATE
      if
      :: rate[s] = RATE - 1
      :: rate[s] = RATE
      :: rate[s] = RATE + 1
      fi;
#endif
      s++
    :: else -> break
    od;
    s = 0;
    run Contender(0); run Contender(1);
#if N > 2
    run Contender(2);
#endif
    run World()
  }
}
