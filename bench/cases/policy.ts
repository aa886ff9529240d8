import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { type BenchCase, type Effort, row } from '../harness/report.ts'
import { ALL, CONCERNED, FEW, type SetUp } from '../servers/judge.ts'

/** Calls of a round; where all rules match, a hundredth of it. */
const CALLS = 5_000
const WARM_UP_ROUNDS = 40
const ROUNDS = 70
const QUICK_ROUNDS = 20
/** Threads of each set-up, one after the other: in some V8 compiles the same code into something that takes 40 % longer, for good. */
const TRIALS = 3

/**
 * Cost of resolution and policy per call: stages `resolve` and `policy` over 1,000 servers and 1,000 rules, compared with one server
 * and one rule. Each setup has a separate thread: a gateway has one set of policies, and V8 optimizes differently for seven.
 */
export const policy: BenchCase = {
  name: 'policy',
  async run({ dir, effort }) {
    const { one = Number.NaN, ...few } = await nanosPerCall(FEW, { dir, effort, calls: CALLS })
    const all = await nanosPerCall(ALL, { dir, effort, calls: CALLS / 100 })
    return [
      ...Object.entries(few).map(([name, nanos]) =>
        row({
          what: `1,000 rules ${name}, ${CONCERNED} concerned`,
          value: nanos / one,
          unit: '×',
          ...(FEW[name]?.inTurn !== true && { target: ['≤', 1.1] as const }),
          detail: `${nanos.toFixed(0)} ns a call, one server and rule ${one.toFixed(0)} ns`,
        }),
      ),
      ...Object.entries(all).map(([name, nanos]) =>
        row({ what: `1,000 rules ${name}`, value: nanos / 1000, unit: 'µs', target: ['≤', 100], detail: '' }),
      ),
    ]
  },
}

interface Judging {
  readonly dir: string
  readonly effort: Effort
  readonly calls: number
}

/**
 * Nanoseconds of CPU a call in the fastest round of all trials: the work is the same in each, and whatever disturbs only adds. The set-ups
 * take turns.
 */
async function nanosPerCall(
  setUps: Readonly<Record<string, SetUp>>,
  judging: Judging,
): Promise<Record<string, number>> {
  const nanos: Record<string, number> = {}
  for (let trial = 0; trial < TRIALS; trial++) {
    const tried = await tryOnce(Object.keys(setUps), judging)
    for (const [name, took] of tried) nanos[name] = Math.min(took, nanos[name] ?? Number.POSITIVE_INFINITY)
  }
  return nanos
}

async function tryOnce(
  names: readonly string[],
  { dir, effort, calls }: Judging,
): Promise<ReadonlyMap<string, number>> {
  const threads = await Promise.all(names.map((name) => startThread(name, dir)))
  const fastest = new Map<string, number>()
  for (let round = -WARM_UP_ROUNDS; round < (effort.quick ? QUICK_ROUNDS : ROUNDS); round++) {
    for (const { name, worker } of threads) {
      worker.postMessage(calls)
      const [took] = await once(worker, 'message')
      if (round >= 0) fastest.set(name, Math.min(took, fastest.get(name) ?? Number.POSITIVE_INFINITY))
    }
  }
  await Promise.all(threads.map(({ worker }) => worker.terminate()))
  return fastest
}

async function startThread(name: string, dir: string): Promise<{ readonly name: string; readonly worker: Worker }> {
  const worker = new Worker(new URL('../servers/judge.ts', import.meta.url), { workerData: { name, dir } })
  await once(worker, 'message')
  return { name, worker }
}
