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
export { type LabelValues, MAX_SERIES, type MetricRow, NAMES, OTHER } from './row.ts'
