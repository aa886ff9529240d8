import type { Clock } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { Circuits } from './circuits.ts'
import type { EndpointCredentials } from './credentials/credentials.ts'
import type { RouteEndpoint } from './endpoint.ts'

const PROBE_TIMEOUT_MS = 10_000
/** Maximum size of a model list, in bytes. */
const MAX_LIST_BYTES = 4 * 1024 * 1024
/** Maximum number of concurrent probes. */
const PROBES_AT_ONCE = 8

export interface ProbeOptions {
  readonly clock: Clock
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  /** Additional CA bundle in PEM, or null. */
  readonly extraCA: string | null
  /** 0 for never. */
  readonly everyMs: number
  readonly circuits: Circuits
  /** Returns the current endpoints. */
  readonly endpoints: () => readonly RouteEndpoint[]
  readonly credentials: Pick<EndpointCredentials, 'headers'>
}

/**
 * Periodically requests the model list of every endpoint (docs/spec/gateway.md, `probeIntervalSeconds`), so that a dead one is detected before
 * a call uses it. Rounds never overlap. Returns a function that stops it.
 */
export function startProbes(options: ProbeOptions): () => void {
  const { clock, everyMs } = options
  if (everyMs === 0) return () => {}
  let running = false
  return clock.every(everyMs, () => {
    if (running) return
    running = true
    void round(options).finally(() => {
      running = false
    })
  })
}

async function round(options: ProbeOptions): Promise<void> {
  const waiting = options.endpoints().values()
  const lane = async () => {
    for (const endpoint of waiting) {
      if (await lives(endpoint, options)) options.circuits.lives(endpoint)
      else options.circuits.failed(endpoint)
    }
  }
  await Promise.all(Array.from({ length: PROBES_AT_ONCE }, lane))
}

/** Returns whether an endpoint is up: refusals count as up, server errors and rate limits do not. */
async function lives(endpoint: RouteEndpoint, options: ProbeOptions): Promise<boolean> {
  const { dialer, extraCA, clock, credentials } = options
  const url = new URL(`${endpoint.upstream}/models`)
  const request = { method: 'GET', origin: url.origin, path: url.pathname, body: null, at: clock.now() }
  const headers = { accept: 'application/json', ...credentials.headers(endpoint, request) }
  const limits = { maxBytes: MAX_LIST_BYTES, timeoutMs: PROBE_TIMEOUT_MS, headers }
  try {
    const { status } = await dialer.fetchBytes(url, 'model', { ...limits, ...(extraCA !== null && { caPEM: extraCA }) })
    return status < 500 && status !== 408 && status !== 429
  } catch {
    return false
  }
}
