import { buildInfo, type Clock, type Ids } from '@plat/core'
import { type Dialer, listen, mountProbes } from '@plat/http'
import { type Access, KubernetesApi, type Members } from '@plat/kubernetes'
import { followLicense, licenseMeter } from '@plat/license'
import { createRegistry } from '@plat/metrics'
import type { Log } from '@plat/process'
import { createKubernetesStore } from '@plat/resources/kubernetes'
import type { OperatorRegistry } from './controllers/controller.ts'
import { Elector } from './controllers/elector.ts'
import { endpointsOf, gatewayLabelsOf, type OperatorFlags, stdioSettingsOf } from './flags.ts'
import { LeaderTerm, type Sandboxes } from './kube/leader-term.ts'
import { Mirror } from './kube/mirror.ts'
import { Objects } from './kube/objects.ts'
import { Outputs, OWNER } from './kube/outputs.ts'
import { operatorMetrics } from './metrics.ts'
import { meterBillableNodes } from './nodes/billable.ts'
import { Minter } from './sessions/mint.ts'
import { EXTENSIONS_API, NETWORK_API, OF_SESSIONS, SANDBOX_API, SNAPSHOT_API } from './sessions/pod/sandbox.ts'
import { Releaser } from './sessions/releases.ts'
import { stdioWatchesOf } from './stdio/watches.ts'

/** Default namespace of the operator. */
const DEFAULT_NAMESPACE = 'plat-system'
/** The Lease of the leader. */
const LEASE = 'plat-operator'
/** How long probes and scrapes in flight may take once the operator drains, in milliseconds. */
const DRAIN_MS = 5_000

export interface OperatorOptions {
  readonly flags: OperatorFlags
  readonly access: Access
  readonly dialer: Dialer
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  /** Identifies this replica: the name of the machine or pod. */
  readonly host: string
  /** Of the identity broker; null: there are no sandboxes. */
  readonly broker: ServiceCredentials | null
  /** Of the attestation service. Null or absent: attested sessions get no releases here. */
  readonly attestation?: ServiceCredentials | null
}

/** How the operator authenticates to another service, and that service to it. */
export interface ServiceCredentials {
  readonly token: string
  /** PEM, beside the system's authorities. */
  readonly caPEM: string | null
}

/** A running operator. */
export interface Operator {
  /** Of `/metrics` and the probes. */
  readonly url: string
  readonly leads: () => boolean
  /** Ends what it does, gives the Lease back, and closes. */
  drain(): Promise<void>
}

/** Starts the operator on a cluster. Rejects with one line when the address cannot be listened on. */
export async function startOperator(options: OperatorOptions): Promise<Operator> {
  const { flags, access, clock, ids, log } = options
  const build = buildInfo('operator')
  const registry: OperatorRegistry = createRegistry(operatorMetrics, { component: 'operator', build })
  const api = new KubernetesApi({
    access,
    dialer: options.dialer,
    clock,
    onAnswer: (method, code) => registry.counter('rest_client_requests_total').inc({ method, code }),
  })
  const license = await followLicense({ path: flags['license-file'], clock, log, onStanding: licenseMeter(registry) })
  const stopping = new AbortController()
  const loops = startLoops({ ...options, api, registry }, stopping.signal)
  const countProcess = processMetrics(registry, clock)
  const metrics = () => {
    countProcess()
    loops.measure()
    registry.gauge('leader_election_master_status').set({ name: LEASE }, loops.leads() ? 1 : 0)
    return registry.expose()
  }
  const ready = () => loops.synced() && !stopping.signal.aborted
  const listener = await listen({
    address: flags['metrics-bind-address'],
    clock,
    ids,
    log,
    api: (app) => mountProbes(app, { ready, unavailable: loops.failing, build, metrics }),
  }).catch(async (error: unknown) => {
    stopping.abort()
    license.close()
    await loops.ended
    throw error
  })
  log.info({ url: listener.url, api: access.server }, 'listening')
  return {
    url: listener.url,
    leads: loops.leads,
    async drain() {
      stopping.abort()
      license.close()
      await loops.ended
      await listener.drain(DRAIN_MS)
    },
  }
}

interface Loops {
  synced(): boolean
  leads(): boolean
  /** Outputs that cannot be written. */
  failing(): readonly string[]
  measure(): void
  /** Resolves when all have ended, after `stop` has aborted. */
  readonly ended: Promise<unknown>
}

interface LoopParts extends OperatorOptions {
  readonly api: KubernetesApi
  readonly registry: OperatorRegistry
}

/** Runs until the operator stops: the mirror always, the controllers while this replica leads. */
function startLoops(parts: LoopParts, stop: AbortSignal): Loops {
  const { flags, access, api, registry, clock, ids, log, host } = parts
  const namespace = flags.namespace || access.namespace || DEFAULT_NAMESPACE
  const storeOf = (scope: { readonly namespace?: string }) =>
    createKubernetesStore({ api, statusOwner: OWNER, ...scope })
  const everywhere = storeOf({})
  const scopes = flags['watch-namespaces']
  const stores = scopes.length === 0 ? [everywhere] : scopes.map((scope) => storeOf({ namespace: scope }))
  let term: LeaderTerm | null = null
  const mirror = new Mirror({ stores, clock, ids, log, onChange: (kind, keys) => term?.changed(kind, keys) })
  const outputs = new Outputs({ api, namespace, registry, log })
  const common = { api, namespace, clock, log }
  const { dialer } = parts
  const everyMs = flags['node-count-interval']
  const sandboxes = sandboxesOf(parts, () => term)
  const foreign = sandboxes === null ? [] : Object.values(sandboxes.foreign)
  const stdio = stdioSettingsOf(flags)
  const stdioWatches = stdio === null ? null : stdioWatchesOf(parts, (objects) => term?.stdioChanged(objects))
  const lead = async (signal: AbortSignal) => {
    // Another leader may have changed what this replica wrote before.
    outputs.forget()
    const [currency, modelKeysDir] = [flags['budget-currency'], flags['model-keys-dir']]
    const own = { mirror, outputs, registry, dialer, currency, modelKeysDir, statusStore: everywhere, sandboxes, ids }
    term = new LeaderTerm({ ...common, ...own, stdio, stdioWatches, endpoints: endpointsOf(flags) })
    const counting = meterBillableNodes({ ...common, watched: scopes, everyMs, outputs, registry }, signal)
    await Promise.all([term.run(signal), counting])
    outputs.release()
    term = null
  }
  const elector = new Elector({
    ...common,
    name: LEASE,
    identity: `${host}_${ids.uuid()}`,
    leaseMs: flags['leader-elect-lease-duration'],
    renewMs: flags['leader-elect-renew-deadline'],
    retryMs: flags['leader-elect-retry-period'],
  })
  const work = async () => {
    // Only forks need snapshots, and only live views NetworkPolicies: without the right to list them, all other sessions go on.
    const { snapshots, networks } = sandboxes?.foreign ?? {}
    const needed = foreign.filter((objects) => objects !== snapshots && objects !== networks)
    const synced = [mirror.whenSynced, ...needed.map((objects) => objects.whenSynced)]
    await Promise.race([Promise.all(synced), aborted(stop)])
    if (flags['leader-elect']) await elector.run(lead, stop)
    else if (!stop.aborted) await lead(stop)
  }
  return {
    synced: () => mirror.synced,
    leads: () => term !== null,
    failing: () => outputs.failing,
    measure: () => term?.measure(),
    ended: Promise.all([
      mirror.follow(stop),
      // Nothing waits for the objects of stdio servers: without the right to list them, everything else goes on.
      ...[...foreign, ...Object.values(stdioWatches ?? {})].map((objects) => objects.follow(stop)),
      work(),
    ]),
  }
}

/** Settings of sandboxes, if the flags name a broker that mints their tokens. */
function sandboxesOf(
  { flags, broker, attestation = null, api, dialer, registry, clock, ids, log }: LoopParts,
  term: () => Pick<LeaderTerm, 'foreignChanged' | 'poolsChanged' | 'served'> | null,
): Sandboxes | null {
  if (broker === null) return null
  const { token, caPEM } = broker
  const scopes = flags['watch-namespaces']
  const sandboxChanged = (objects: readonly Members[]) => term()?.foreignChanged(objects)
  const poolsChanged = (objects: readonly Members[]) => term()?.poolsChanged(objects)
  const follow = (
    group: string,
    plural: string,
    onChange: (objects: readonly Members[]) => void,
    selection: { readonly labelSelector?: string } = {},
  ) => {
    const within = scopes.length === 0 ? [''] : scopes.map((scope) => `/namespaces/${scope}`)
    const paths = within.map((part) => `/apis/${group}${part}/${plural}`)
    return new Objects({ api, paths, ...selection, clock, ids, log, onChange, onServed: () => term()?.served() })
  }
  const [url, attestationUrl] = [withoutSlash(flags['identity-url']), withoutSlash(flags['attestation-url'])]
  return {
    foreign: {
      sandboxes: follow(SANDBOX_API, 'sandboxes', sandboxChanged),
      claims: follow(EXTENSIONS_API, 'sandboxclaims', sandboxChanged),
      pools: follow(EXTENSIONS_API, 'sandboxwarmpools', poolsChanged),
      snapshots: follow(SNAPSHOT_API, 'volumesnapshots', sandboxChanged, {
        labelSelector: 'app.kubernetes.io/managed-by=plat-operator',
      }),
      networks: follow(NETWORK_API, 'networkpolicies', sandboxChanged, { labelSelector: OF_SESSIONS }),
    },
    minter: new Minter({ url, brokerToken: token, ...(caPEM !== null && { caPEM }), dialer, registry, clock }),
    releaser:
      attestation === null
        ? null
        : new Releaser({
            ...{ url: attestationUrl, token: attestation.token, dialer },
            ...(attestation.caPEM !== null && { caPEM: attestation.caPEM }),
          }),
    settings: {
      gatewayUrl: withoutSlash(flags['gateway-url']),
      attestationUrl: attestation === null ? '' : attestationUrl,
      gatewayLabels: gatewayLabelsOf(flags),
      workspaceSize: flags['workspace-size'],
      browserImage: flags['browser-image'],
      codeInterpreterImage: flags['code-interpreter-image'],
    },
  }
}

function withoutSlash(url: string): string {
  return url.replace(/\/$/, '')
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

/** Process metrics. Returns a function that updates them. */
function processMetrics(registry: OperatorRegistry, clock: Clock): () => void {
  registry.gauge('process_start_time_seconds').set({}, clock.now() / 1000 - process.uptime())
  registry.gauge('process_resident_memory_bytes').from(() => process.memoryUsage.rss())
  registry.gauge('nodejs_heap_size_used_bytes').from(() => process.memoryUsage().heapUsed)
  let counted = 0
  return () => {
    const { user, system } = process.cpuUsage()
    registry.counter('process_cpu_seconds_total').inc({}, (user + system) / 1e6 - counted)
    counted = (user + system) / 1e6
  }
}
