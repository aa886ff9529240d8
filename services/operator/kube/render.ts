import { ApiFault, type KubernetesApi, member, textOf } from '@plat/kubernetes'
import type { Log } from '@plat/process'
import type { Kind, Resource } from '@plat/resources'
import { loadCedar } from '@plat/resources/cedar'
import { decodeRendered, type PolicyFile, policyFileSchema } from '@plat/resources/rendered'
import type { Reconcile } from '../controllers/controller.ts'
import { bundleOf, credentialFiles, renderCredentials } from '../render/auth.ts'
import { type Declared, keyOf } from '../render/declared.ts'
import { hasCedar, renderEverything } from '../render/everything.ts'
import type { RevocationEntry } from '../render/limits/revocations.ts'
import { type ModelKey, modelKeys } from '../render/models.ts'
import { faultLine, serverFaults } from '../render/unbuilt.ts'
import type { Mirror } from './mirror.ts'
import type { Outputs } from './outputs.ts'
import { readKeys } from './referenced.ts'

/** The one key of this controller: everything is rendered together. */
export const EVERYTHING = 'everything'

/** How often Secrets and ConfigMaps that resources name are read again, in milliseconds: they are not watched. */
const READ_AGAIN_MS = 30_000
/** How often everything is written again, in milliseconds, whoever may have changed it meanwhile. */
const WRITE_AGAIN_MS = 600_000

/** The Secrets that only the gateway mounts. */
export const CREDENTIALS_SECRET = 'plat-upstream-credentials'
export const MODEL_KEYS_SECRET = 'plat-model-keys'

/** The ConfigMap of a rendered file: `policies.json` is a key of its own name in `plat-policies`. */
export function configMapOf(file: string): string {
  return `plat-${file.replace(/\.json$/, '')}`
}

/** One rendering, and what it was made from. */
export interface Rendering {
  readonly servers: readonly Resource<'MCPServer'>[]
  readonly policies: readonly Resource<'ToolPolicy'>[]
  readonly sovereignty: readonly Resource<'SovereigntyPolicy'>[]
  readonly tiers: readonly Resource<'TrustTier'>[]
  readonly refused: readonly string[]
  /** Every object that it was made from, by `<Kind> <namespace>/<name>`. */
  readonly objects: ReadonlyMap<string, Resource>
}

export interface RenderParts {
  readonly api: KubernetesApi
  readonly mirror: Mirror
  readonly outputs: Outputs
  /** Where `plat-policies` stands. */
  readonly namespace: string
  /** ISO 4217: what the gateway counts in. */
  readonly currency: string
  /** Folder at which the gateway mounts the Secret of model keys. */
  readonly modelKeysDir: string
  readonly monotonic: () => number
  /** Revocations of sessions that have ended. */
  readonly ended: () => readonly RevocationEntry[]
  readonly log: Log
  /** Hears of each rendering once it is written. */
  readonly onRendered: (rendering: Rendering) => void
}

/** The reconciler that renders everything into ConfigMaps and Secrets. */
export function createRender(parts: RenderParts): Reconcile {
  const { mirror, outputs, monotonic } = parts
  let previous: PolicyFile | null | undefined
  let refusedBefore: readonly string[] = []
  let writtenAt = monotonic()
  return async (_key, signal) => {
    if (monotonic() - writtenAt >= WRITE_AGAIN_MS) {
      outputs.forget()
      writtenAt = monotonic()
    }
    previous ??= await readPrevious(parts, signal)
    const declared = await declaredNow(parts, signal)
    const { files, refused } = renderEverything(declared, keyFileIn(parts.modelKeysDir), previous)
    const credentials = renderCredentials(declared.servers, declared.secrets)
    const models = renderModelKeys(declared, declared.secrets)
    await outputs.secret(CREDENTIALS_SECRET, credentials.files, signal)
    await outputs.secret(MODEL_KEYS_SECRET, models.files, signal)
    for (const { name, text } of files) {
      await outputs.configMap(configMapOf(name), name, text, signal)
      if (name === 'policies.json') previous = decodePolicies(text)
    }
    const all = [...refused, ...credentials.refused, ...models.refused]
    for (const line of all) if (!refusedBefore.includes(line)) parts.log.error({ refused: line }, 'resource refused')
    refusedBefore = all
    parts.onRendered({ ...declared, refused: all })
    return { requeueAfterMs: READ_AGAIN_MS }
  }

  async function declaredNow({ api, currency, namespace, ended }: RenderParts, signal: AbortSignal) {
    const agents = mirror.list('Agent')
    const servers = mirror.list('MCPServer')
    const policies = mirror.list('ToolPolicy')
    const budgets = mirror.list('BudgetPolicy')
    const memory = mirror.list('MemoryStore')
    const sovereignty = mirror.list('SovereigntyPolicy')
    const tiers = mirror.list('TrustTier')
    const revocations = mirror.list('AgentRevocation')
    // A refused server is not read for: its names may lead anywhere.
    const good = servers.filter((server) => serverFaults(server).length === 0)
    const wanted = [
      ...good.flatMap((server) => credentialFiles(server).map(({ from }) => from)),
      ...modelKeys({ agents, currency, home: namespace }).map(secretOf),
    ]
    const bundles = good.map(bundleOf).filter((from) => from !== null)
    const others = [...budgets, ...memory, ...sovereignty, ...tiers, ...revocations]
    const objects: readonly Resource[] = [...agents, ...servers, ...policies, ...others]
    return {
      ...{ agents, servers, policies, budgets, memory, sovereignty, tiers, revocations, currency, home: namespace },
      ended: ended(),
      cedar: hasCedar(policies) ? await loadCedar() : null,
      secrets: await readKeys(api, 'secrets', wanted, signal),
      bundles: await readKeys(api, 'configmaps', bundles, signal),
      objects: new Map(objects.map((object) => [objectKey(object.kind, keyOf(object)), object])),
    }
  }
}

/** How a rendering names its objects. */
export function objectKey(kind: Kind, key: string): string {
  return `${kind} ${key}`
}

/** `<namespace>.<agent>.<place>`: neither namespaces nor agents have dots in their names. */
function fileOfKey({ namespace, agent, place }: ModelKey): string {
  return `${namespace}.${agent}.${place}`
}

function keyFileIn(dir: string) {
  return (key: ModelKey) => `${dir}/${fileOfKey(key)}`
}

function secretOf({ namespace, secret }: ModelKey): string {
  return `${namespace}/${secret.name}/${secret.key}`
}

/** The keys of models as files that the gateway mounts (document 2, `apiKeySecretRef`): copied for it alone. */
function renderModelKeys(declared: Declared, secrets: ReadonlyMap<string, string>) {
  const files = new Map<string, string>()
  const refused: string[] = []
  const agents = new Map(declared.agents.map((agent) => [keyOf(agent), agent]))
  for (const key of modelKeys(declared)) {
    const text = secrets.get(secretOf(key))
    const agent = agents.get(`${key.namespace}/${key.agent}`)
    if (text !== undefined) files.set(fileOfKey(key), text)
    else if (agent !== undefined) {
      const path = key.place.replace(/^fallback-(\d+)$/, 'model.fallbacks[$1]')
      const why = `no Secret ${secretOf(key)}: calls of this endpoint are refused`
      refused.push(faultLine(agent, { path: `${path}.apiKeySecretRef`, why }))
    }
  }
  return { files, refused }
}

/** The policies that the leader before wrote, for their generation. */
async function readPrevious({ api, namespace }: RenderParts, signal: AbortSignal): Promise<PolicyFile | null> {
  const name = configMapOf('policies.json')
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/configmaps/${name}`
  try {
    const { body } = await api.ask({ method: 'GET', path, signal })
    return decodePolicies(textOf(member(body, 'data'), 'policies.json'))
  } catch (error) {
    if (error instanceof ApiFault && error.status === 404) return null
    throw error
  }
}

/** A strange file counts as none. */
function decodePolicies(text: string): PolicyFile | null {
  const decoded = decodeRendered(policyFileSchema, Buffer.from(text), () => [])
  return decoded.ok ? decoded.file : null
}
