import { type KubernetesApi, KubernetesApiError } from '@plat/kubernetes'
import type { Log } from '@plat/process'
import type { Kind, Resource } from '@plat/resources'
import { loadCedar } from '@plat/resources/cedar'
import { decodeRendered, type PolicyFile, policyFileSchema } from '@plat/resources/rendered'
import type { Reconcile } from '../controllers/controller.ts'
import type { Apis } from '../openapi/apis.ts'
import { sourceOf } from '../openapi/source.ts'
import { bundleOf, credentialFiles, renderCredentials } from '../render/auth.ts'
import { type ApiResults, objectKeyOf, type ReferencedTexts } from '../render/declared.ts'
import { hasCedar } from '../render/everything.ts'
import { type ModelKey, modelKeys } from '../render/models.ts'
import { renderWithinShares } from '../render/size/fit.ts'
import { CONFIG_MAP_BYTES, readPacked } from '../render/size/packed.ts'
import { serverProblems } from '../validate/server.ts'
import type { Mirror } from './mirror.ts'
import { fileOfKey, renderModelKeys, secretOf } from './model-keys.ts'
import { configMapOf, type Outputs } from './outputs.ts'
import type { ReferencedObjects } from './referenced.ts'
import { configMapOutput, type Output, secretOutput, writeOutputs } from './writing.ts'

/** Keys of the controller: everything but revocations is rendered together. */
export const EVERYTHING = 'everything'
export const REVOCATIONS = 'revocations'
/** Reads Secrets and ConfigMaps that resources name again. */
export const REFERENCES = 'references'

/** How often they are read again, in milliseconds: they are not watched. */
const READ_AGAIN_MS = 30_000
/** How often everything is written again, in milliseconds, to undo changes by others. */
const WRITE_AGAIN_MS = 600_000

/** The Secrets that only the gateway mounts. */
export const CREDENTIALS_SECRET = 'plat-upstream-credentials'
export const MODEL_KEYS_SECRET = 'plat-model-keys'

/** One rendering, and what it was made from. */
export interface Rendering {
  readonly servers: readonly Resource<'MCPServer'>[]
  readonly policies: readonly Resource<'ToolPolicy'>[]
  readonly sovereignty: readonly Resource<'SovereigntyPolicy'>[]
  readonly tiers: readonly Resource<'TrustTier'>[]
  readonly refused: readonly string[]
  /** Kinds of which something is not written: nothing is known of what is in force. */
  readonly unwritten: ReadonlySet<Kind>
  /** Every object that it was made from, by `<Kind> <namespace>/<name>`. */
  readonly objects: ReadonlyMap<string, Resource>
}

export interface References {
  readonly secrets: ReferencedObjects
  readonly configMaps: ReferencedObjects
}

export interface RenderParts {
  readonly api: KubernetesApi
  readonly references: References
  readonly apis: Apis
  readonly mirror: Mirror
  readonly outputs: Outputs
  /** Namespace of `plat-policies`. */
  readonly namespace: string
  /** ISO 4217: what the gateway counts in. */
  readonly currency: string
  /** Folder at which the gateway mounts the Secret of model keys. */
  readonly modelKeysDir: string
  readonly monotonic: () => number
  readonly log: Log
  /** Called after each rendering, once what can be written is. */
  readonly onRendered: (rendering: Rendering) => void
}

/** The reconciler that renders everything but revocations into ConfigMaps and Secrets. */
export function createRender(parts: RenderParts): Reconcile {
  const { outputs, monotonic } = parts
  let previous: Pick<PolicyFile, 'generation' | 'revision'> | null | undefined
  let refusedBefore: readonly string[] = []
  let writtenAt = monotonic()
  return async (_key, signal) => {
    if (monotonic() - writtenAt >= WRITE_AGAIN_MS) {
      outputs.forget()
      writtenAt = monotonic()
    }
    const before = previous === undefined ? await attempt(readPrevious(parts, signal), signal) : { value: previous }
    const declared = await declaredNow(parts, signal)
    const { unread } = declared
    const context = { keyFileOf: keyFileIn(parts.modelKeysDir), previous: before.value ?? null }
    const { files, policies, refused } = await renderWithinShares(declared, context)
    const credentials = renderCredentials(declared.servers, declared.secrets, CONFIG_MAP_BYTES)
    const models = renderModelKeys(declared, declared.secrets)
    const unreadFor: Readonly<Record<string, Output['unread']>> = {
      'policies.json': failureOf(before),
      'upstreams.json': unread.bundles,
    }
    const unwritten = await writeOutputs(
      outputs,
      [
        secretOutput(
          outputs,
          { name: CREDENTIALS_SECRET, kinds: ['MCPServer'], unread: unread.secrets },
          credentials.files,
        ),
        secretOutput(outputs, { name: MODEL_KEYS_SECRET, kinds: ['Agent'], unread: unread.secrets }, models.files),
        ...files.map((file) => configMapOutput(outputs, file, unreadFor[file.name] ?? null)),
      ],
      signal,
    )
    if (!unwritten.names.has(configMapOf('policies.json'))) {
      const { generation, revision } = policies
      previous = { generation, revision }
    }
    const all = [...refused, ...credentials.refused, ...models.refused]
    if (unwritten.errors.length === 0) refusedBefore = logNew(parts.log, refusedBefore, all)
    parts.onRendered({ ...declared, refused: all, unwritten: unwritten.kinds })
    if (unwritten.errors.length > 0) throw unwritten.errors[0]
    return { requeueAfterMs: declared.isComplete ? WRITE_AGAIN_MS : 0 }
  }
}

/** The reconciler that looks whether Secrets and ConfigMaps have changed; then calls `onChange`. */
export function createRefresh({ secrets, configMaps }: References, onChange: () => void): Reconcile {
  return async (_key, signal) => {
    const refreshed = [await secrets.refresh(signal), await configMaps.refresh(signal)]
    if (refreshed.some(({ hasChanged }) => hasChanged)) onChange()
    for (const { errors } of refreshed) for (const error of errors) throw error
    return { requeueAfterMs: READ_AGAIN_MS }
  }
}

/** The current resources, with the Secrets and ConfigMaps that they reference. */
async function declaredNow({ references, mirror, apis, currency, namespace }: RenderParts, signal: AbortSignal) {
  const agents = mirror.list('Agent')
  const servers = mirror.list('MCPServer')
  const policies = mirror.list('ToolPolicy')
  const budgets = mirror.list('BudgetPolicy')
  const memory = mirror.list('MemoryStore')
  const sovereignty = mirror.list('SovereigntyPolicy')
  const tiers = mirror.list('TrustTier')
  // A refused server is not read for: its names may lead anywhere.
  const good = servers.filter((server) => serverProblems(server).length === 0)
  const wanted = [
    ...good.flatMap((server) => credentialFiles(server).map(({ from }) => from)),
    ...modelKeys({ agents, currency, home: namespace }).map(secretOf),
  ]
  const bundles = good.map(bundleOf).filter((from) => from !== null)
  const secrets = await attempt(references.secrets.read(wanted, signal), signal)
  const documents = good.map(sourceOf).flatMap(({ field, name }) => (field === 'configMapRef' ? (name ?? []) : []))
  const configMaps = await attempt(references.configMaps.read([...bundles, ...documents], signal), signal)
  const others = [...budgets, ...memory, ...sovereignty, ...tiers]
  const objects: readonly Resource[] = [...agents, ...servers, ...policies, ...others]
  return {
    ...{ agents, servers, policies, budgets, memory, sovereignty, tiers, currency, home: namespace },
    cedar: hasCedar(policies) ? await loadCedar() : null,
    secrets: secrets.value ?? NOTHING,
    bundles: configMaps.value ?? NOTHING,
    apis: await toolsOf(apis, servers, configMaps.value),
    isComplete: secrets.value?.isComplete !== false && configMaps.value?.isComplete !== false,
    unread: { secrets: failureOf(secrets), bundles: failureOf(configMaps) },
    objects: new Map(objects.map((object) => [objectKeyOf(object), object])),
  }
}

/** How long the first rendering of a leader waits for OpenAPI documents, in milliseconds: without their tools servers would be removed. */
const DOCUMENTS_MS = 10_000

/** While ConfigMaps cannot be read, `upstreams.json` is not written, and the tools stay as they are known. */
async function toolsOf(
  apis: Apis,
  servers: readonly Resource<'MCPServer'>[],
  configMaps: ReferencedTexts | undefined,
): Promise<ApiResults> {
  if (configMaps === undefined) return apis.last
  const isFirst = apis.last.size === 0
  const results = apis.current(servers, configMaps)
  if (!isFirst || results.size === 0) return results
  await apis.settled(DOCUMENTS_MS)
  return apis.current(servers, configMaps)
}

const NOTHING: ReferencedTexts = { texts: new Map(), withheld: new Map() }

function keyFileIn(dir: string) {
  return (key: ModelKey) => `${dir}/${fileOfKey(key)}`
}

type Attempt<T> = { readonly value: T; readonly error?: never } | { readonly value?: never; readonly error: unknown }

/** Settles like a promise; rejects once `signal` aborts. */
async function attempt<T>(work: Promise<T>, signal: AbortSignal): Promise<Attempt<T>> {
  try {
    return { value: await work }
  } catch (error) {
    if (signal.aborted) throw error
    return { error }
  }
}

function failureOf(attempt: Attempt<unknown>): { readonly error: unknown } | null {
  return 'error' in attempt ? { error: attempt.error } : null
}

/** Logs lines that were not there before; returns all of them. */
function logNew(log: Log, before: readonly string[], lines: readonly string[]): readonly string[] {
  const known = new Set(before)
  for (const line of lines) if (!known.has(line)) log.error({ refused: line }, 'resource refused')
  return lines
}

/** The policies that the leader before wrote, for their generation. */
async function readPrevious({ api, namespace }: RenderParts, signal: AbortSignal): Promise<PolicyFile | null> {
  const name = configMapOf('policies.json')
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/configmaps/${name}`
  try {
    const { body } = await api.ask({ method: 'GET', path, signal })
    return decodePolicies(await readPacked(body, 'policies.json'))
  } catch (error) {
    if (error instanceof KubernetesApiError && error.status === 404) return null
    throw error
  }
}

/** A strange file counts as none. */
function decodePolicies(text: string): PolicyFile | null {
  const decoded = decodeRendered(policyFileSchema, Buffer.from(text), () => [])
  return decoded.ok ? decoded.file : null
}
