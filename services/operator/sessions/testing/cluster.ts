import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { parseFlags } from '@plat/config'
import { systemClock, systemIds } from '@plat/core'
import { createDialer } from '@plat/http'
import { silentLog } from '@plat/process'
import type { TestIdentity } from '@plat/testkit/identity'
import { KubernetesApiServer } from '@plat/testkit/kubernetes/api-server'
import { until } from '@plat/testkit/until'
import { operatorFlags } from '../../flags.ts'
import { type Operator, startOperator } from '../../start.ts'

export const PLAT = '/apis/plat.dev/v1alpha1'
export const TEAM = `${PLAT}/namespaces/team`
export const SANDBOXES = '/apis/agents.x-k8s.io/v1beta1/namespaces/team/sandboxes'
export const SECRETS = '/api/v1/namespaces/team/secrets'

interface Metadata {
  readonly uid: string
  readonly [name: string]: unknown
}

interface Status {
  readonly phase?: string
  readonly jti?: string
  readonly mode?: string
  readonly startedAt?: string
  readonly expiresAt?: string
  readonly sandboxRef?: object
  readonly env?: Readonly<Record<string, string>>
  readonly conditions?: readonly {
    readonly type: string
    readonly status: string
    readonly reason: string
    readonly message: string
  }[]
}

function flags(brokerUrl: string, { attestation, flags: more = [] }: Brokers) {
  const argv = ['-metrics-bind-address=127.0.0.1:0', '-leader-elect=false', `-identity-url=${brokerUrl}`, ...more]
  if (attestation !== undefined) argv.push(`-attestation-url=${attestation.url}`)
  const parsed = parseFlags(operatorFlags, argv)
  return parsed.ok ? parsed.values : assert.fail(parsed.message)
}

/** An operator that leads on this cluster once it is started, until the test ends. */
function operatorOn(t: TestContext, server: KubernetesApiServer, brokers: Brokers) {
  const { identity, brokerUrl = identity.url, attestation } = brokers
  const clock = systemClock
  const dialer = createDialer({ clock, log: silentLog })
  let operator: Operator | null = null
  t.after(async () => {
    await operator?.drain()
    dialer.close()
    await server.stop()
  })
  const restart = async () => {
    await operator?.drain()
    await start()
  }
  const start = async () => {
    const access = {
      server: server.url,
      namespace: 'plat-system',
      credentials: async () => ({ headers: {}, trust: {} }),
    }
    const parts = {
      flags: flags(brokerUrl, brokers),
      attestation: attestation === undefined ? null : { token: attestation.token, caPEM: null },
      access,
      dialer,
      clock,
      ids: systemIds(clock),
      log: silentLog,
      host: 'test',
    }
    operator = await startOperator({ ...parts, broker: { token: identity.brokerToken, caPEM: null } })
  }
  return { start, restart, metrics: async () => (await fetch(`${operator?.url}/metrics`)).text() }
}

interface Brokers {
  readonly identity: TestIdentity
  /** Where the operator looks for the broker. Default: where it is. */
  readonly brokerUrl?: string
  /** An attestation service that creates releases. Absent: there is none. */
  readonly attestation?: { readonly url: string; readonly token: string }
  /** Further flags of the operator; the last of a name counts. */
  readonly flags?: readonly string[]
}

/** Options of the cluster of a session test: specs of the Agent `a` and of its TrustTier `t`. */
export interface ClusterOptions {
  readonly agent?: object
  readonly tier?: object
  readonly brokerUrl?: string
}

/** A cluster with an Agent `a` of the tier `t`, an operator that leads, and what agent-sandbox's controller does. */
export async function setUpCluster(t: TestContext, { agent = {}, tier = {}, ...brokers }: ClusterOptions & Brokers) {
  const server = new KubernetesApiServer()
  await server.start()
  const { start, restart, metrics } = operatorOn(t, server, brokers)
  server.put(`${PLAT}/trusttiers/t`, { spec: tier })
  server.put(`${TEAM}/agents/a`, { spec: { image: 'i', tier: 't', tools: [{ name: 'notes' }], ...agent } })
  const at = (path: string) => {
    const { metadata, spec, status }: { metadata: Metadata; spec: Record<string, unknown>; status?: object } = Object(
      server.get(path),
    )
    return { metadata, spec, status }
  }
  const statusOf = (name = 's'): Status => at(`${TEAM}/agentsessions/${name}`).status ?? {}
  return {
    server,
    start,
    restart,
    at,
    statusOf,
    condition: (type: string, name = 's') => statusOf(name).conditions?.find((one) => one.type === type),
    session: (spec: object = {}, name = 's', metadata: object = {}) =>
      server.put(`${TEAM}/agentsessions/${name}`, {
        metadata,
        spec: { agentRef: 'a', user: 'ada@example.com', ...spec },
      }),
    /** Changes the spec or the annotations of a session, and nothing else. */
    change: (spec: object, annotations: object = {}, name = 's') => {
      const before = at(`${TEAM}/agentsessions/${name}`)
      server.put(`${TEAM}/agentsessions/${name}`, {
        metadata: { annotations },
        spec: { ...before.spec, ...spec },
        ...(before.status !== undefined && { status: before.status }),
      })
    },
    /** Status of a Sandbox from agent-sandbox's controller. */
    says: (name: string, type: string, reason = '') => {
      const { metadata, spec } = at(`${SANDBOXES}/${name}`)
      const status = { conditions: [{ type, status: 'True', reason }] }
      server.put(`${SANDBOXES}/${name}`, { metadata, spec, status })
    },
    reaches: (phase: string, name = 's') => until(() => statusOf(name).phase === phase, `${name} is ${phase}`),
    metrics,
  }
}
