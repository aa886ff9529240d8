import { attestationMetrics } from '@plat/attestation/metrics'
import { gatewayMetricRows } from '@plat/gateway/metric-rows'
import type { MetricRow } from '@plat/metrics'
import { operatorMetrics } from '@plat/operator/metrics'
import { type Dashboard, dashboards, type OwnPanel, perInstance, splitBy, summed } from './dashboards.ts'

/** Series of the components that people see, each once: of the license both gateway and operator have one. */
export const tables: ReadonlyMap<string, MetricRow> = new Map(
  [...attestationMetrics, ...operatorMetrics, ...gatewayMetricRows].map((row) => [row.name, row]),
)

/** Grafana's grid has this many columns. */
const COLUMNS = 24
const PANEL = { timeseries: { w: 8, h: 8 }, stat: { w: 4, h: 4 } } as const
const SCHEMA_VERSION = 39
const DATASOURCE = { type: 'prometheus', uid: `\${datasource}` }
const QUANTILES = [0.5, 0.95, 0.99]
/** A series with a label `job` cannot be filtered by the job that Prometheus reads. */
const JOB = 'job=~"$job"'

interface Panel {
  readonly kind: 'stat' | 'timeseries'
  readonly title: string
  readonly description: string
  readonly unit: string
  readonly targets: readonly { readonly expr: string; readonly legend: string }[]
}

/** `deploy/chart/dashboards/`: file names and their texts. Throws if a dashboard names a series or a label that no table has. */
export function dashboardFiles(): Readonly<Record<string, string>> {
  return Object.fromEntries(
    dashboards.map((one) => [`${one.name}.json`, `${JSON.stringify(dashboardOf(one), null, 2)}\n`]),
  )
}

function dashboardOf({ name, title, rows }: Dashboard): object {
  const panels: object[] = []
  let y = 0
  for (const row of rows) {
    panels.push({
      id: panels.length + 1,
      type: 'row',
      title: row.title,
      collapsed: false,
      gridPos: { x: 0, y, w: COLUMNS, h: 1 },
      panels: [],
    })
    y++
    let x = 0
    let height = 0
    for (const panel of [...(row.own ?? []).map(ownPanel), ...seriesOf(row).map(seriesPanel)]) {
      const { w, h } = PANEL[panel.kind]
      if (x + w > COLUMNS || (height !== 0 && height !== h)) {
        y += height
        x = 0
      }
      height = h
      panels.push({ id: panels.length + 1, gridPos: { x, y, w, h }, ...grafanaPanel(panel) })
      x += w
    }
    y += height
  }
  return {
    uid: `plat-${name}`,
    title,
    tags: ['plat'],
    schemaVersion: SCHEMA_VERSION,
    version: 1,
    editable: true,
    refresh: '30s',
    time: { from: 'now-6h', to: 'now' },
    templating: { list: variables() },
    links: [
      {
        type: 'dashboards',
        title: 'plat',
        tags: ['plat'],
        asDropdown: true,
        icon: 'external link',
        tooltip: '',
        targetBlank: false,
        includeVars: true,
        keepTime: true,
      },
    ],
    panels,
  }
}

function variables(): readonly object[] {
  return [
    { name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus' },
    {
      name: 'job',
      label: 'Job',
      type: 'query',
      datasource: DATASOURCE,
      query: { query: 'label_values(plat_build_info, job)', refId: 'job' },
      refresh: 2,
      includeAll: true,
      multi: true,
      allValue: '.*',
      current: { text: 'All', value: '$__all' },
    },
  ]
}

function seriesOf({ areas = [], series = [] }: Dashboard['rows'][number]): readonly MetricRow[] {
  const named = series.map((name) => tables.get(name) ?? unknown(name))
  return [...named, ...[...tables.values()].filter(({ area }) => areas.includes(area))]
}

function unknown(name: string): never {
  throw new Error(`dashboards.ts: no table has the series ${name}`)
}

function ownPanel({ kind = 'timeseries', title, description, expr, legend = '', unit }: OwnPanel): Panel {
  const filtered = expr.replaceAll('{}', `{${JOB}}`).replaceAll(/\{(?=[a-z]+=")/g, `{${JOB}, `)
  return { kind, title, description, unit, targets: [{ expr: filtered, legend }] }
}

function seriesPanel(row: MetricRow): Panel {
  const { name, type, help } = row
  const by = labelsOf(row)
  const isAge = name.endsWith('_timestamp_seconds')
  const panel = {
    kind: 'timeseries',
    title: titleOf(row),
    description: `${help}. ${name}`,
    unit: isAge ? 's' : unitOf(row),
  } as const
  const filter = 'job' in row.labels ? '' : `{${JOB}}`
  const legend = by.map((label) => `{{${label}}}`).join(' ')
  const rate = (suffix: string, more: readonly string[] = []) =>
    `sum${grouping([...by, ...more])}(rate(${name}${suffix}${filter}[$__rate_interval]))`
  switch (type) {
    case 'counter':
      return { ...panel, targets: [{ expr: rate(''), legend }] }
    case 'summary':
      return { ...panel, targets: [{ expr: `${rate('_sum')} / ${rate('_count')}`, legend: `mean ${legend}`.trim() }] }
    case 'histogram': {
      const targets = QUANTILES.map((quantile) => ({
        expr: `histogram_quantile(${quantile}, ${rate('_bucket', ['le'])})`,
        legend: `p${quantile * 100} ${legend}`.trim(),
      }))
      return { ...panel, targets }
    }
    case 'gauge': {
      const value = `${summed.has(name) ? 'sum' : 'max'}${grouping(by)}(${name}${filter})`
      return { ...panel, targets: [{ expr: isAge ? `time() - ${value}` : value, legend }] }
    }
  }
}

/** Throws if a series has more labels than a legend can show, or is split by one that it does not have. */
function labelsOf({ name, type, labels }: MetricRow): readonly string[] {
  const all = Object.keys(labels)
  const by = splitBy[name] ?? all
  const other = by.find((label) => !all.includes(label))
  if (other !== undefined) throw new Error(`dashboards.ts: ${name} has no label ${other}`)
  if (by.length > 2) throw new Error(`dashboards.ts: splitBy must choose two of the labels of ${name}`)
  return type === 'gauge' && perInstance.some((pattern) => pattern.test(name)) ? ['instance', ...by] : by
}

function grouping(by: readonly string[]): string {
  return by.length === 0 ? '' : ` by (${by.join(', ')}) `
}

/** `plat_gateway_audit_sink_lag` is `Audit sink lag`. */
function titleOf({ name, type }: MetricRow): string {
  const words = name
    .replace(/^(?:plat_gateway|plat|controller_runtime)_/, '')
    .replace(/_last_success_timestamp_seconds$/, '_age_of_last_success')
    .replace(/_timestamp_seconds$/, '_age')
    .replace(/_(?:total|seconds|bytes)$/, '')
    .replaceAll('_', ' ')
  const per = type === 'counter' ? ' per second' : ''
  return words.charAt(0).toUpperCase() + words.slice(1) + per
}

function unitOf({ name, type }: MetricRow): string {
  if (name === 'process_cpu_seconds_total') return 'none'
  if (type === 'counter') return 'ops'
  if (name === 'process_start_time_seconds') return 'none'
  if (/_seconds$/.test(name)) return 's'
  return /_bytes$/.test(name) ? 'bytes' : 'none'
}

function grafanaPanel({ kind, title, description, unit, targets }: Panel): object {
  const custom = kind === 'timeseries' ? { custom: { lineWidth: 1, fillOpacity: 10, showPoints: 'never' } } : {}
  const options =
    kind === 'timeseries'
      ? { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi', sort: 'desc' } }
      : { colorMode: 'value', graphMode: 'area', reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false } }
  return {
    type: kind,
    title,
    description,
    datasource: DATASOURCE,
    fieldConfig: { defaults: { unit, ...custom }, overrides: [] },
    options,
    targets: targets.map(({ expr, legend }, at) => ({
      refId: String.fromCharCode('A'.charCodeAt(0) + at),
      datasource: DATASOURCE,
      expr,
      legendFormat: legend === '' ? '__auto' : legend,
    })),
  }
}
