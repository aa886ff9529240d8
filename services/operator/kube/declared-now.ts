import type { Resource } from '@plat/resources'
import { loadCedar } from '@plat/resources/cedar'
import type { Apis } from '../openapi/apis.ts'
import { sourceOf } from '../openapi/source.ts'
import { bundleOf, credentialFiles } from '../render/auth.ts'
import { type ApiResults, objectKeyOf, type ReferencedTexts } from '../render/declared.ts'
import { hasCedar } from '../render/everything.ts'
import { modelKeys } from '../render/models.ts'
import { serverProblems } from '../validate/server.ts'
import type { Mirror } from './mirror.ts'
import { secretOf } from './model-keys.ts'
import type { ReferencedObjects } from './referenced.ts'
import { type StdioKeyParts, stdioPlaceOf, stdioSecretKeys } from './stdio.ts'

export interface References {
  readonly secrets: ReferencedObjects
  readonly configMaps: ReferencedObjects
}

export interface DeclaredParts extends StdioKeyParts {
  readonly references: References
  readonly apis: Apis
  readonly mirror: Mirror
  /** ISO 4217: what the gateway counts in. */
  readonly currency: string
}

/** The current resources, with the Secrets and ConfigMaps that they reference. */
export async function declaredNow(parts: DeclaredParts, signal: AbortSignal) {
  const { references, mirror, apis, currency, namespace } = parts
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
    ...stdioSecretKeys(parts.stdio, good),
  ]
  const place = await attempt(stdioPlaceOf(parts, signal), signal)
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
    stdio: place.value ?? null,
    isComplete: secrets.value?.isComplete !== false && configMaps.value?.isComplete !== false,
    // Without the key of stdio servers, files that name them stay as they were.
    unread: {
      secrets: failureOf(secrets) ?? failureOf(place),
      bundles: failureOf(configMaps) ?? failureOf(place),
    },
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

type Attempt<T> = { readonly value: T; readonly error?: never } | { readonly value?: never; readonly error: unknown }

/** Settles like a promise; rejects once `signal` aborts. */
export async function attempt<T>(work: Promise<T>, signal: AbortSignal): Promise<Attempt<T>> {
  try {
    return { value: await work }
  } catch (error) {
    if (signal.aborted) throw error
    return { error }
  }
}

/** Returns the error of a failed attempt, or null. */
export function failureOf(attempt: Attempt<unknown>): { readonly error: unknown } | null {
  return 'error' in attempt ? { error: attempt.error } : null
}
