import { type Gauge, gauge, type MetricRow, metricRows } from '@plat/metrics'
import { STATES, type Standing } from './standing.ts'

const licence = { area: 'Licence', feature: '' } as const

/** The series of a licence (docs/spec/gateway.md, "Licence"), in the gateway and in the operator. */
export const licenseMetrics = [
  ...metricRows(licence, {
    plat_license_state: gauge('1 for the state that the licence is in', { edition: { cap: 64 }, state: STATES }),
    plat_license_days_left: gauge(
      'Whole days until the licence ends, negative in its grace and after; absent without a licence',
    ),
    plat_license_node_limit: gauge('Nodes that the licence covers; 0 is unlimited'),
  }),
] as const satisfies readonly MetricRow[]

/** A registry whose table has `licenseMetrics`. */
export interface LicenseGauges {
  gauge(name: 'plat_license_state'): Gauge<'edition' | 'state'>
  gauge(name: 'plat_license_days_left' | 'plat_license_node_limit'): Gauge<never>
}

/** Returns a function that sets the gauges to the state of a licence and removes those of a previous edition. */
export function licenseMeter(registry: LicenseGauges): (standing: Standing) => void {
  const state = registry.gauge('plat_license_state')
  const daysLeft = registry.gauge('plat_license_days_left')
  const nodeLimit = registry.gauge('plat_license_node_limit')
  let previous = ''
  return (standing) => {
    if (previous !== standing.edition) state.clear()
    previous = standing.edition
    for (const one of STATES) state.set({ edition: standing.edition, state: one }, one === standing.state ? 1 : 0)
    if (standing.daysLeft === null) daysLeft.clear()
    else daysLeft.set({}, standing.daysLeft)
    nodeLimit.set({}, standing.nodeLimit)
  }
}
