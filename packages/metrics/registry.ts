import type { BuildInfo } from '@plat/core'
import { type AnyFamily, CounterFamily, createFamily, GaugeFamily, HistogramFamily, SummaryFamily } from './kinds.ts'
import type { MetricRow } from './row.ts'

/** Label values by name; numbers are written as they print. */
export type Labels<L extends string> = { readonly [K in L]: string | number }

/** Without labels the argument may be left out. */
type LabelsFirst<L extends string, Rest extends readonly unknown[]> = [L] extends [never]
  ? [labels?: Labels<never>, ...rest: Rest]
  : [labels: Labels<L>, ...rest: Rest]

export interface Counter<L extends string = string> {
  inc(...args: LabelsFirst<L, [by?: number]>): void
  /** Returns one series, for a hot path with constant labels. */
  labels(labels: Labels<L>): { inc(by?: number): void }
}

export interface Gauge<L extends string = string> {
  /** `{}` for a gauge without labels. */
  set(labels: Labels<L>, value: number): void
  /** Reads the value at each exposition; for a gauge without labels. */
  from(read: () => number): void
  /** Returns one series; with `from` its value is read at each exposition. */
  labels(labels: Labels<L>): { set(value: number): void; from(read: () => number): void }
  /** Removes all series until they are set again, including those returned by `labels`. */
  clear(): void
}

/** A histogram or a summary. */
export interface Observed<L extends string = string> {
  /** `{}` for a series without labels. */
  observe(labels: Labels<L>, value: number): void
  labels(labels: Labels<L>): { observe(value: number): void }
}

type RowOf<R extends readonly MetricRow[], T extends MetricRow['type']> = Extract<R[number], { type: T }>
type LabelOf<R extends readonly MetricRow[], N extends string> = Extract<
  keyof Extract<R[number], { name: N }>['labels'],
  string
>

/** All series of one process, by the names of its table: an unknown name or label does not compile. */
export interface Registry<R extends readonly MetricRow[] = readonly MetricRow[]> {
  counter<N extends RowOf<R, 'counter'>['name']>(name: N): Counter<LabelOf<R, N>>
  gauge<N extends RowOf<R, 'gauge'>['name']>(name: N): Gauge<LabelOf<R, N>>
  histogram<N extends RowOf<R, 'histogram'>['name']>(name: N): Observed<LabelOf<R, N>>
  summary<N extends RowOf<R, 'summary'>['name']>(name: N): Observed<LabelOf<R, N>>
  /** Prometheus text format 0.0.4. */
  expose(): string
}

export interface RegistryOptions {
  component: string
  build: BuildInfo
  /** Configured features; rows of others count but are not shown. Absent: all rows are shown. */
  features?: ReadonlySet<string>
}

const NAME = /^[a-z][a-z0-9_]*$/

/**
 * Creates the registry of a service, which includes `plat_build_info`. Throws when the table is invalid: a duplicate name, a histogram without
 * ascending buckets.
 */
export function createRegistry<const R extends readonly MetricRow[]>(
  rows: R,
  { component, build, features }: RegistryOptions,
): Registry<R> {
  const families = new Map<string, AnyFamily>()
  for (const row of rows) {
    checkRow(row)
    if (families.has(row.name)) throw new Error(`metric ${row.name} is in the table twice`)
    families.set(row.name, createFamily(row))
  }
  const info = buildInfoFamily(component, build)
  const isShown = ({ row }: AnyFamily) => features === undefined || row.feature === '' || features.has(row.feature)
  const get = <F extends AnyFamily>(name: string, kind: new (row: MetricRow) => F): F => {
    const family = families.get(name)
    if (family instanceof kind) return family
    throw new Error(`${name} is not a ${kind.name} of the metric table`)
  }
  return {
    counter: (name) => get(name, CounterFamily),
    gauge: (name) => get(name, GaugeFamily),
    histogram: (name) => get(name, HistogramFamily),
    summary: (name) => get(name, SummaryFamily),
    expose: () => [info, ...families.values()].map((family) => (isShown(family) ? family.expose() : '')).join(''),
  }
}

function checkRow({ name, type, labels, buckets = [] }: MetricRow): void {
  for (const part of [name, ...Object.keys(labels)]) {
    if (!NAME.test(part)) throw new Error(`metric ${name}: ${part} is not a name`)
  }
  const ascending = buckets.every((bound, at) => at === 0 || bound > (buckets[at - 1] ?? Number.POSITIVE_INFINITY))
  if ((type === 'histogram') !== buckets.length > 0 || !ascending) {
    throw new Error(`metric ${name}: a histogram, and nothing else, has ascending buckets`)
  }
}

function buildInfoFamily(component: string, { version, commit, goVersion, tags }: BuildInfo): GaugeFamily {
  const one = { cap: 1 }
  const family = new GaugeFamily({
    name: 'plat_build_info',
    type: 'gauge',
    labels: { component: one, version: one, commit: one, goversion: one, tags: one },
    area: 'All components',
    feature: '',
    help: 'Build of this component, always 1',
  })
  family.set({ component, version, commit, goversion: goVersion, tags }, 1)
  return family
}
