import { execFileSync } from 'node:child_process'
import { cpus, loadavg } from 'node:os'

export type Limit = readonly [sign: '≤' | '≥', value: number]

/** One line of the table. */
export interface Row {
  readonly what: string
  readonly value: number
  /** Behind the value: `×`, `ms`, `k/s`. */
  readonly unit: string
  /** The figures that the value comes from. */
  readonly detail: string
  readonly target: string
  /** null: a figure without a target. */
  readonly met: boolean | null
}

export interface Figure {
  readonly what: string
  readonly value: number
  readonly unit: string
  readonly detail: string
  readonly target?: Limit
}

/** Judges a figure by its target; a figure that is not a number does not meet any. */
export function row({ what, value, unit, detail, target }: Figure): Row {
  if (target === undefined) return { what, value, unit, detail, target: '', met: null }
  const [sign, limit] = target
  const met = sign === '≤' ? value <= limit : value >= limit
  return { what, value, unit, detail, target: `${sign} ${limit}`, met }
}

/** How long and how often: the whole bench stays under five minutes, `quick` under one. */
export interface Effort {
  readonly quick: boolean
  readonly rounds: number
  readonly warmUpMs: number
  readonly roundMs: number
  readonly latencyRounds: number
}

export const fullEffort: Effort = { quick: false, rounds: 24, warmUpMs: 6_000, roundMs: 500, latencyRounds: 3_000 }
export const quickEffort: Effort = { quick: true, rounds: 6, warmUpMs: 2_000, roundMs: 400, latencyRounds: 400 }

export interface CaseContext {
  readonly effort: Effort
  /** An empty folder of this case, removed after it. */
  readonly dir: string
}

/** One file of `cases/`. */
export interface BenchCase {
  readonly name: string
  run(context: CaseContext): Promise<readonly Row[]>
}

export interface Report {
  readonly at: string
  readonly node: string
  readonly cpu: string
  readonly cores: number
  readonly loadBefore: readonly number[]
  readonly loadAfter: readonly number[]
  readonly commit: string
  readonly quick: boolean
  readonly rows: readonly (Row & { readonly case: string })[]
  /** Cases that gave no figures, and why. */
  readonly void: readonly { readonly case: string; readonly why: string }[]
}

export function machine(): { node: string; cpu: string; cores: number; load: number[]; commit: string } {
  const [first] = cpus()
  return { node: process.version, cpu: first?.model ?? '', cores: cpus().length, load: loadavg(), commit: commit() }
}

function commit(): string {
  try {
    return execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8', stdio: 'pipe' }).trim()
  } catch {
    return ''
  }
}

/** The line of one row; the head of the table is `tableHead`. */
export function tableLine(name: string, { what, value, unit, target, met, detail }: Row): string {
  const verdict = met === null ? '' : met ? 'met' : 'not met'
  const figure = `${value.toFixed(2)} ${unit}`
  return [name.padEnd(8), what.padEnd(44), figure.padStart(14), target.padStart(10), verdict.padEnd(8), detail].join(
    '  ',
  )
}

export const tableHead = [
  'case'.padEnd(8),
  'what'.padEnd(44),
  'figure'.padStart(14),
  'target'.padStart(10),
  'verdict'.padEnd(8),
  'from',
].join('  ')
