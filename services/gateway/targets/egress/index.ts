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

/** What policies match, and the second half of the scope. */
const SERVER = 'plat-egress'

export interface EgressOptions {
  readonly snapshots: Snapshots
  /** Where a CONNECT leads, as its plane read it. */
  readonly placeOf: (call: Call) => URL | null
  /** Why a caller may not be led to a host and a port, in words that hold nothing of them; null: it may. */
  readonly gate: (caller: Caller, place: URL) => string | null
  /** Which scopes a caller lacks; null: none. */
  readonly missingScopes: (identity: Identity, server: string, tool: string) => string | null
  /** `web.taintLabels`: a tunnel brings them, since its content cannot be read. */
  readonly taints: readonly string[]
  readonly metrics: GatewayMetrics
}

/**
 * The browser egress proxy (docs/spec/gateway.md, `egress`): from a CONNECT to the host that policies are asked about. The scope comes first, then
 * the lists of domains, which are asked again whenever they change while the tunnel is open.
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

/** Why no tunnel may lead there, by the lists of this snapshot. */
function shut({ placeOf, gate }: EgressOptions, call: Call<'identity'>, snapshot: Snapshot): Denial | null {
  const place = placeOf(call)
  if (place === null) return deny('internal', 'the request was not read')
  const fault = gate({ identity: call.facts.identity, snapshot }, place)
  return fault === null ? null : deny('policy_denied', `the host may not be reached: ${fault}`)
}

/** Nobody can look into a tunnel, so what leaves by it is taken for what strangers are told. */
function targetOf(host: string, taints: readonly string[]): Target {
  const labels = { ...unresolved.labels, taints }
  return { ...unresolved, key: SERVER, server: SERVER, tool: host, labels, dataClass: 'public', builtin: true }
}
