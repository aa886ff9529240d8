import { Family, type LabelRecord, line, printNumber } from './family.ts'
import type { MetricRow } from './row.ts'

class NumberCell {
  value = 0

  inc(by = 1): void {
    this.value += by
  }

  set(value: number): void {
    this.value = value
  }
}

/** Counts events; never decreases. */
export class CounterFamily extends Family<NumberCell> {
  inc(labels: LabelRecord = {}, by = 1): void {
    this.cell(labels).inc(by)
  }

  labels(labels: LabelRecord): NumberCell {
    return this.cell(labels)
  }

  protected create(): NumberCell {
    return new NumberCell()
  }

  protected print({ value }: NumberCell, text: string): string {
    return line(this.row.name, text, value)
  }
}

class GaugeCell extends NumberCell {
  #read: (() => number) | null = null

  /** Reads the value at each exposition, instead of `set`. */
  from(read: () => number): void {
    this.#read = read
  }

  get displayed(): number {
    return this.#read === null ? this.value : this.#read()
  }
}

/** Current value of something. */
export class GaugeFamily extends Family<GaugeCell> {
  set(labels: LabelRecord, value: number): void {
    this.cell(labels).set(value)
  }

  /** Reads the value of a gauge without labels at each exposition, instead of `set`. */
  from(read: () => number): void {
    this.cell({}).from(read)
  }

  labels(labels: LabelRecord): GaugeCell {
    return this.cell(labels)
  }

  clear(): void {
    this.forget()
  }

  protected create(): GaugeCell {
    return new GaugeCell()
  }

  protected print({ displayed }: GaugeCell, text: string): string {
    return line(this.row.name, text, displayed)
  }
}

class HistogramCell {
  readonly #bounds: readonly number[]
  /** Events per bucket, each counted once; they are summed up when shown. */
  readonly counts: Float64Array
  sum = 0
  count = 0

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.counts = new Float64Array(bounds.length)
  }

  observe(value: number): void {
    this.sum += value
    this.count++
    for (let at = 0; at < this.#bounds.length; at++) {
      if (value <= (this.#bounds[at] ?? Number.POSITIVE_INFINITY)) {
        this.counts[at] = (this.counts[at] ?? 0) + 1
        return
      }
    }
  }
}

/** Counts events by size in cumulative buckets. */
export class HistogramFamily extends Family<HistogramCell> {
  observe(labels: LabelRecord, value: number): void {
    this.cell(labels).observe(value)
  }

  labels(labels: LabelRecord): HistogramCell {
    return this.cell(labels)
  }

  protected create(): HistogramCell {
    return new HistogramCell(this.row.buckets ?? [])
  }

  protected print(cell: HistogramCell, text: string): string {
    const { name, buckets = [] } = this.row
    const before = text === '' ? '' : `${text},`
    let lines = ''
    let below = 0
    for (const [at, bound] of buckets.entries()) {
      below += cell.counts[at] ?? 0
      lines += line(`${name}_bucket`, `${before}le="${printNumber(bound)}"`, below)
    }
    lines += line(`${name}_bucket`, `${before}le="+Inf"`, cell.count)
    return lines + line(`${name}_sum`, text, cell.sum) + line(`${name}_count`, text, cell.count)
  }
}

class SummaryCell {
  sum = 0
  count = 0

  observe(value: number): void {
    this.sum += value
    this.count++
  }
}

/** Sum and count of sizes, without quantiles. */
export class SummaryFamily extends Family<SummaryCell> {
  observe(labels: LabelRecord, value: number): void {
    this.cell(labels).observe(value)
  }

  labels(labels: LabelRecord): SummaryCell {
    return this.cell(labels)
  }

  protected create(): SummaryCell {
    return new SummaryCell()
  }

  protected print({ sum, count }: SummaryCell, text: string): string {
    const { name } = this.row
    return line(`${name}_sum`, text, sum) + line(`${name}_count`, text, count)
  }
}

export type AnyFamily = CounterFamily | GaugeFamily | HistogramFamily | SummaryFamily

export function createFamily(row: MetricRow): AnyFamily {
  switch (row.type) {
    case 'counter':
      return new CounterFamily(row)
    case 'gauge':
      return new GaugeFamily(row)
    case 'histogram':
      return new HistogramFamily(row)
    case 'summary':
      return new SummaryFamily(row)
  }
}
