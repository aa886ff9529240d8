import { type PoolObservers, type PoolOf, poolsOf } from '@plat/core'
import { counter, createPoolMeter, gauge, type MetricRow, metricRows, type Registry } from '@plat/metrics'

/** Why evidence released nothing: code of the refusal, and label `reason`. */
const REASONS = [
  'invalid_request',
  'unknown_release',
  'invalid_key',
  'other_key',
  'busy',
  'invalid_nonce',
  'evidence_refused',
  'measurement_refused',
  'platform_changed',
  'session_revoked',
  'unavailable',
  'internal',
] as const

/** A renewal also presents the session's token; `lapsed`: it was not requested in time. */
const RENEWAL_REASONS = [...REASONS, 'invalid_token', 'lapsed'] as const

/** Pools that callers share. */
const POOLS = poolsOf('attestation')

const attestation = { area: 'Attestation service', feature: '' } as const

/** Every series of the attestation service (docs/spec/gateway.md, "Metrics"). */
export const attestationMetrics = [
  ...metricRows(attestation, {
    plat_attest_success_total: counter('Releases that were redeemed with evidence'),
    plat_attest_failure_total: counter('Redemptions that were refused, by the reason', { reason: REASONS }),
    plat_attest_releases_created_total: counter('Releases that were created'),
    plat_attest_renewal_success_total: counter('Tokens that were renewed with fresh evidence'),
    plat_attest_renewal_failure_total: counter(
      'Renewals that were refused, or not requested before the token ended, by the reason',
      { reason: RENEWAL_REASONS },
    ),
    plat_attest_releases_pending: gauge('Releases that wait for evidence'),
    plat_attest_renewals_active: gauge('Sessions that hold a token and renew it'),
    plat_attest_pool_used: gauge('Units of a shared pool that callers hold', { pool: POOLS }),
    plat_attest_pool_refusals_total: counter(
      'Refusals by a shared pool, by the bound that was met: the share of one caller, or the total',
      { pool: POOLS, bound: ['share', 'total'] },
    ),
    plat_attest_overloaded: gauge(
      'Whether new releases and redemptions are refused because memory is short or the event loop is late',
    ),
  }),
] as const satisfies readonly MetricRow[]

export type AttestationRegistry = Registry<typeof attestationMetrics>

export type AttestationPools = PoolObservers<PoolOf<'attestation'>>

/** The pools of the service as rows of its metric table. */
export function attestationPools(registry: AttestationRegistry): AttestationPools {
  return createPoolMeter(registry.gauge('plat_attest_pool_used'), registry.counter('plat_attest_pool_refusals_total'))
}
