import {
  type Call,
  type Caller,
  type Denial,
  deny,
  type Identity,
  type Snapshot,
  type Snapshots,
  type Target,
  unresolved,
} from '../../call/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'
import { type Stage, stage } from '../../pipeline/stage.ts'

/** Server name in policies, and second half of the scope. */
const SERVER = 'plat-egress'

export interface EgressOptions {
  readonly snapshots: Snapshots
  /** Returns the destination of a CONNECT, as parsed by its plane. */
  readonly placeOf: (call: Call) => URL | null
  /** Returns why a caller may not reach a host and port, without naming them, or null. */
  readonly gate: (caller: Caller, place: URL) => string | null
  /** Returns the scopes that a caller lacks, or null. */
  readonly missingScopes: (identity: Identity, server: string, tool: string) => string | null
  /** `web.taintLabels`: added for every tunnel, since its content cannot be inspected. */
  readonly taints: readonly string[]
  readonly metrics: GatewayMetrics
}

/**
 * The browser egress proxy (docs/spec/gateway.md, `egress`): resolves a CONNECT to the host that policies decide about. Checks the scope first,
 * then the domain lists, which are checked again on every change while the tunnel is open.
 */
export function createEgressResolve(options: EgressOptions): Stage<'resolve', 'identity', 'target'> {
  const { snapshots, missingScopes, metrics } = options
  const requests = metrics.counter('plat_gateway_egress_requests_total')
  const count = (decision: 'allow' | 'deny') => requests.inc({ kind: 'connect', decision })
  return stage({
    name: 'resolve',
    needs: ['identity'],
    gives: ['target'],
    skipped: { target: unresolved },
    admit(call) {
      const host = call.name ?? ''
      const scope = missingScopes(call.facts.identity, SERVER, host)
      const no = scope === null ? shut(options, call, call.snapshot) : lacking(scope)
      if (no === null) return { target: targetOf(host, options.taints) }
      count('deny')
      return no
    },
    settle: (_, { result }) => count(result === 'denied' ? 'deny' : 'allow'),
    still: (call) => (snapshots.current === call.snapshot ? null : shut(options, call, snapshots.current)),
  })
}

function lacking(scope: string): Denial {
  return deny('insufficient_scope', `scope ${scope} is required`, { data: { scope } })
}

/** Returns why the lists of this snapshot deny the tunnel, or null. */
function shut({ placeOf, gate }: EgressOptions, call: Call<'identity'>, snapshot: Snapshot): Denial | null {
  const place = placeOf(call)
  if (place === null) return deny('internal', 'the request was not read')
  const fault = gate({ identity: call.facts.identity, snapshot }, place)
  return fault === null ? null : deny('policy_denied', `the host may not be reached: ${fault}`)
}

/** Content of a tunnel cannot be inspected, so it counts as sent to the public. */
function targetOf(host: string, taints: readonly string[]): Target {
  const labels = { ...unresolved.labels, taints }
  return { ...unresolved, key: SERVER, server: SERVER, tool: host, labels, dataClass: 'public', builtin: true }
}
