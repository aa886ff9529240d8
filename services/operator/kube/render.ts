import { type KubernetesApi, KubernetesApiError } from '@plat/kubernetes'
import type { Log } from '@plat/process'
import type { Kind, Resource } from '@plat/resources'
import { decodeRendered, type PolicyFile, policyFileSchema } from '@plat/resources/rendered'
import type { Reconcile } from '../controllers/controller.ts'
import { renderCredentials } from '../render/auth.ts'
import type { ModelKey } from '../render/models.ts'
import { renderWithinShares } from '../render/size/fit.ts'
import { CONFIG_MAP_BYTES, readPacked } from '../render/size/packed.ts'
import type { Workloads } from '../stdio/workloads.ts'
import { attempt, type DeclaredParts, declaredNow, failureOf, type References } from './declared-now.ts'
import { fileOfKey, renderModelKeys } from './model-keys.ts'
import { configMapOf, type Outputs } from './outputs.ts'
import { stdioTokensOf, workloadsOf } from './stdio.ts'
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
  /** Stdio servers by `<namespace>/<name>`; null: nothing is known of them. */
  readonly workloads: Workloads['byKey'] | null
  /** Every object that it was made from, by `<Kind> <namespace>/<name>`. */
  readonly objects: ReadonlyMap<string, Resource>
}

export interface RenderParts extends DeclaredParts {
  readonly api: KubernetesApi
  readonly outputs: Outputs
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
    const credentials = renderCredentials(declared.servers, declared.secrets, {
      maxBytes: CONFIG_MAP_BYTES,
      stdioTokenOf: stdioTokensOf(declared.stdio),
    })
    const workloads = workloadsOf(declared)
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
    const all = [...refused, ...credentials.refused, ...models.refused, ...(workloads?.refused ?? [])]
    if (unwritten.errors.length === 0) refusedBefore = logNew(parts.log, refusedBefore, all)
    parts.onRendered({ ...declared, refused: all, unwritten: unwritten.kinds, workloads: workloads?.byKey ?? null })
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

function keyFileIn(dir: string) {
  return (key: ModelKey) => `${dir}/${fileOfKey(key)}`
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
