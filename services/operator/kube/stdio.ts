import type { Ids } from '@plat/core'
import { type KubernetesApi, KubernetesApiError, type Members, member, textOf } from '@plat/kubernetes'
import type { Manifest, Resource } from '@plat/resources'
import { ReconcileError } from '../controllers/controller.ts'
import type { Declared } from '../render/declared.ts'
import { problemsOf } from '../render/upstreams.ts'
import { stdioSecretsOf } from '../stdio/file.ts'
import { type StdioPlace, type StdioSettings, stdioTokenOf } from '../stdio/place.ts'
import { renderWorkloads, type Workloads } from '../stdio/workloads.ts'
import { OWNER } from './outputs.ts'

/** The Secret in the operator's namespace from which tokens and certificates of stdio servers are derived. */
const KEY_SECRET = 'plat-stdio-key'
const KEY_BYTES = 32
const NOT_FOUND = 404
const CONFLICT = 409

export interface StdioKeyParts {
  readonly ids: Pick<Ids, 'random'>
  readonly api: Pick<KubernetesApi, 'ask'>
  readonly namespace: string
  readonly stdio: StdioSettings | null
}

/** Reads the key, and creates it the first time. Returns null if stdio servers do not run here. */
export async function stdioPlaceOf(parts: StdioKeyParts, signal: AbortSignal): Promise<StdioPlace | null> {
  if (parts.stdio === null) return null
  return { ...parts.stdio, key: keyIn((await find(parts, signal)) ?? (await create(parts, signal))) }
}

function keyIn(secret: Members): Buffer {
  const key = Buffer.from(textOf(member(secret, 'data'), 'key'), 'base64')
  if (key.length === KEY_BYTES) return key
  throw new ReconcileError(
    'InvalidKey',
    `Secret ${KEY_SECRET}: key must have ${KEY_BYTES} bytes; delete it, and a new one is made`,
  )
}

function collectionOf({ namespace }: StdioKeyParts): string {
  return `/api/v1/namespaces/${encodeURIComponent(namespace)}/secrets`
}

async function find(parts: StdioKeyParts, signal: AbortSignal): Promise<Members | null> {
  try {
    return (await parts.api.ask({ method: 'GET', path: `${collectionOf(parts)}/${KEY_SECRET}`, signal })).body
  } catch (error) {
    if (error instanceof KubernetesApiError && error.status === NOT_FOUND) return null
    throw error
  }
}

async function create(parts: StdioKeyParts, signal: AbortSignal): Promise<Members> {
  const labels = { 'app.kubernetes.io/managed-by': OWNER, 'app.kubernetes.io/part-of': 'plat' }
  const body = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: KEY_SECRET, namespace: parts.namespace, labels },
    data: { key: Buffer.from(parts.ids.random(KEY_BYTES)).toString('base64') },
  }
  try {
    const query = { fieldManager: OWNER }
    return (await parts.api.ask({ method: 'POST', path: collectionOf(parts), query, body, signal })).body
  } catch (error) {
    const isThere = error instanceof KubernetesApiError && error.status === CONFLICT
    const found = isThere ? await find(parts, signal) : null
    if (found === null) throw error
    return found
  }
}

/** Returns the tokens of the gateway for stdio servers; undefined: none run here. */
export function stdioTokensOf(stdio: StdioPlace | null) {
  return stdio === null ? undefined : (server: Manifest<'MCPServer'>) => stdioTokenOf(stdio, server)
}

/** Keys of Secrets that stdio servers need. */
export function stdioSecretKeys(
  stdio: StdioSettings | null,
  servers: readonly Manifest<'MCPServer'>[],
): readonly string[] {
  return stdio === null ? [] : servers.flatMap(stdioSecretsOf).map(({ from }) => from)
}

/** Resources with what they name, as far as it could be read. */
export interface DeclaredStdio extends Declared {
  readonly home: string
  readonly stdio: StdioPlace | null
  readonly servers: readonly Resource<'MCPServer'>[]
  readonly secrets: Parameters<typeof renderWorkloads>[1]['secrets']
  readonly unread: { readonly secrets: object | null }
}

/** The objects in which stdio servers run; null: values of Secrets are not known, or none run here. */
export function workloadsOf(declared: DeclaredStdio): Workloads | null {
  const { stdio, home, secrets, unread, servers } = declared
  if (stdio === null || unread.secrets !== null) return null
  const own = servers.filter((server) => server.spec.stdio !== undefined && problemsOf(server, declared).length === 0)
  return renderWorkloads(own, { place: stdio, home, secrets })
}
