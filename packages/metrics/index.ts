export { createPoolMeter } from './pools.ts'
export {
  type Counter,
  createRegistry,
  type Gauge,
  type Labels,
  type Observed,
  type Registry,
  type RegistryOptions,
} from './registry.ts'
export {
  counter,
  gauge,
  histogram,
  type LabelValues,
  MAX_SERIES,
  type MetricRow,
  metricRows,
  NAMES,
  OTHER,
  summary,
} from './row.ts'
