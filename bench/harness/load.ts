import { Connection, type HttpResponse } from './client.ts'
import type { Server } from './proc.ts'
import { median, quantile, quartiles } from './stats.ts'

/** Traffic of a server: the bytes of each request, and a check of its response. */
export interface Traffic {
  /** The `n`th request of the run. */
  request(n: number): Buffer
  isRight(answer: HttpResponse): boolean
}

export interface Target {
  readonly server: Server
  readonly traffic: Traffic
}

export interface LoadOptions {
  readonly rounds: number
  /** Milliseconds of the same load that are thrown away first: long enough for the compiler to be done. */
  readonly warmUpMs: number
  readonly roundMs: number
  /** Connections, each with one request under way; default: 16. */
  readonly connections?: number
}

const CONNECTIONS = 16

/** One round of a target. */
interface RoundSample {
  /** Microseconds of server CPU per request. */
  readonly micros: number
  /** Requests per second. */
  readonly rate: number
}

/** CPU cost of each target's requests at its server, and their rate, per round. */
export class CpuSamples<Name extends string> {
  readonly #samples: ReadonlyMap<string, readonly RoundSample[]>

  constructor(samples: ReadonlyMap<string, readonly RoundSample[]>) {
    this.#samples = samples
  }

  /** Microseconds of server CPU per request: the median of the rounds. */
  micros(name: Name): number {
    return median((this.#samples.get(name) ?? []).map(({ micros }) => micros))
  }

  /** How often the cost of `other` fits into that of `name`: the median over rounds that ran one after the other. */
  over(name: Name, other: Name): number {
    return this.#ratio(name, other, ({ micros }) => micros)
  }

  /** The same for requests per second. */
  rateOver(name: Name, other: Name): number {
    return this.#ratio(name, other, ({ rate }) => rate)
  }

  #ratio(name: Name, other: Name, figure: (sample: RoundSample) => number): number {
    const others = (this.#samples.get(other) ?? []).map(figure)
    return median(
      (this.#samples.get(name) ?? []).map((sample, round) => figure(sample) / (others[round] ?? Number.NaN)),
    )
  }
}

/**
 * Server CPU per request. The targets take turns in short rounds, so that a slow moment of the machine meets them all; every second round
 * runs backwards. A wrong answer ends the run: it is void.
 */
export async function cpuPerRequest<Name extends string>(
  targets: Readonly<Record<Name, Target>>,
  options: LoadOptions,
): Promise<CpuSamples<Name>> {
  const { connections = CONNECTIONS } = options
  const entries: [string, Target][] = Object.entries(targets)
  const loops = entries.map(([name, target]) => ({ name, loop: new ClosedLoop(target, connections) }))
  const samples = new Map<string, RoundSample[]>(entries.map(([name]) => [name, []]))
  for (const { loop } of loops) await loop.round(options.warmUpMs)
  for (let round = 0; round < options.rounds; round++) {
    for (const { name, loop } of loops) samples.get(name)?.push(await loop.round(options.roundMs))
    loops.reverse()
  }
  return new CpuSamples(samples)
}

/** Sends requests to one target over new connections in each round, each as soon as the connection's last one was answered. */
class ClosedLoop {
  readonly #target: Target
  readonly #connections: number
  #next = 0

  constructor(target: Target, connections: number) {
    this.#target = target
    this.#connections = connections
  }

  async round(ms: number): Promise<RoundSample> {
    const { server, traffic } = this.#target
    const connections = Array.from({ length: this.#connections }, () => new Connection(server.port))
    const cpuBefore = server.cpuMicros()
    const from = performance.now()
    let completed = 0
    try {
      await Promise.all(
        connections.map(async (connection) => {
          while (performance.now() < from + ms) {
            check(traffic, await connection.send(traffic.request(this.#next++)))
            completed++
          }
        }),
      )
    } finally {
      for (const connection of connections) connection.close()
    }
    const seconds = (performance.now() - from) / 1000
    return { micros: (server.cpuMicros() - cpuBefore) / completed, rate: completed / seconds }
  }
}

function check(traffic: Traffic, answer: HttpResponse): void {
  if (!traffic.isRight(answer)) throw new Error(`void: a wrong answer: ${answer.status} ${answer.body.slice(0, 500)}`)
}

export interface Latency {
  readonly p50: ReadonlyMap<string, number>
  /** Median and quartiles of the differences in one round, in microseconds. */
  difference(of: string, from: string): { readonly p50: number; readonly q1: number; readonly q3: number }
}

/** Rounds at the start that are thrown away. */
const COLD_ROUNDS = 200
const COLD_FIRST_BYTES = 50

/**
 * One client with one connection per target; each round sends one request to every target, in random order. `between` is measured
 * once a round too, under its own name, while no request is in progress.
 */
export async function pairedLatency(
  targets: Readonly<Record<string, Target>>,
  rounds: number,
  between: Readonly<Record<string, () => Promise<void>>> = {},
): Promise<Latency> {
  const connections = new Map(Object.entries(targets).map(([name, { server }]) => [name, new Connection(server.port)]))
  const jobs: [string, (n: number) => Promise<void>][] = Object.entries(targets).map(([name, { traffic }]) => [
    name,
    async (n) => {
      const answer = await connections.get(name)?.send(traffic.request(n))
      if (answer !== undefined) check(traffic, answer)
    },
  ])
  for (const [name, job] of Object.entries(between)) jobs.push([name, job])
  const times = new Map<string, number[]>(jobs.map(([name]) => [name, []]))
  try {
    for (let round = -COLD_ROUNDS; round < rounds; round++) {
      for (const [name, job] of shuffled(jobs)) {
        const from = performance.now()
        await job(round + COLD_ROUNDS)
        if (round >= 0) times.get(name)?.push((performance.now() - from) * 1000)
      }
    }
  } finally {
    for (const connection of connections.values()) connection.close()
  }
  return latencyOf(times)
}

/**
 * Microseconds by which `ours` hands out the first byte of a stream later than `floor`, round by round. It says itself when the upstream
 * sent it, so that what happens before does not count. `noise99`: the same for `floor` against itself.
 */
export async function pairedFirstByte(
  targets: Readonly<Record<'floor' | 'ours', Target>>,
  rounds: number,
): Promise<{ readonly p50: number; readonly p99: number; readonly noise99: number }> {
  const floor = new Connection(targets.floor.server.port)
  const ours = new Connection(targets.ours.server.port)
  const late = async (connection: Connection, { traffic }: Target, n: number) => {
    const answer = await connection.send(traffic.request(n))
    check(traffic, answer)
    return answer.firstByteAt - Number(/sent at ([\d.]+)/.exec(answer.body)?.[1])
  }
  const differences: number[] = []
  const noise: number[] = []
  try {
    for (let round = 0; round < rounds + COLD_FIRST_BYTES; round++) {
      const first = await late(floor, targets.floor, round)
      const second = await late(ours, targets.ours, round)
      const again = await late(floor, targets.floor, round)
      if (round < COLD_FIRST_BYTES) continue
      differences.push((second - first) * 1000)
      noise.push((again - first) * 1000)
    }
  } finally {
    floor.close()
    ours.close()
  }
  return { p50: median(differences), p99: quantile(differences, 0.99), noise99: quantile(noise, 0.99) }
}

function latencyOf(times: ReadonlyMap<string, readonly number[]>): Latency {
  return {
    p50: new Map([...times].map(([name, values]) => [name, median(values)])),
    difference(of, from) {
      const base = times.get(from) ?? []
      const [q1, p50, q3] = quartiles((times.get(of) ?? []).map((value, i) => value - (base[i] ?? Number.NaN)))
      return { p50, q1, q3 }
    },
  }
}

function shuffled<T>(items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item)
}
