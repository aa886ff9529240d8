import { hostname } from 'node:os'
import { createCredentials } from '../authn/credentials/index.ts'
import type { Authenticator } from '../authn/identity/index.ts'
import { createTokenVault } from '../authn/token-vault/index.ts'
import { createMemory } from '../builtin/memory/index.ts'
import { createApiServers } from '../builtin/openapi/index.ts'
import type { Snapshot } from '../call/index.ts'
import { createScreens } from '../content/dlp/index.ts'
import { createTaint } from '../decide/taint/index.ts'
import { namedInCall } from '../planes/a2a/index.ts'
import type { ModelRoute, ModelRoutes } from '../planes/model/index.ts'
import { createAgents } from '../targets/a2a/index.ts'
import { createCtxengine } from '../targets/ctxengine/index.ts'
import { BatchBook, createModels, StoredContents } from '../targets/models/index.ts'
import { createServers, registrySlot } from '../targets/servers/index.ts'
import { startBuiltins } from './builtins.ts'
import type { Callers } from './callers.ts'
import type { Shared } from './shared.ts'

export type Targets = Awaited<ReturnType<typeof startTargets>>

/** Servers, models and agents that can be called, with the credentials they receive. */
export async function startTargets(shared: Shared, { authenticator, revocations, ledgers }: Callers) {
  const { config, metrics, keep } = shared
  const vault = keep(await createTokenVault({ ...shared, revokedUsers: revocations.users, ledgers }))
  const sessionToken: Authenticator['sessionToken'] = (caller) => authenticator.sessionToken(caller)
  const credentials = keep(createCredentials({ ...shared, userTokens: vault.tokens, sessionToken }))
  const clears = (snapshot: Snapshot) => snapshot.get(registrySlot).clears
  const taint = keep(await createTaint({ ...shared, clears }))
  const screens = createScreens(config.dlpProfiles, metrics)
  const memory = keep(await createMemory({ ...shared, labels: taint, screens, ledgers }))
  const builtins = [...(await startBuiltins(shared)), memory.server].filter((server) => server !== null)
  const missingScopes = authenticator.scopes.missing
  const serveApi = createApiServers({ ...shared, credentials, upstreamTimeoutMs: config.upstreamTimeoutSeconds * 1000 })
  const mayShare = (namespace: string, other: string) => shared.tenancy.mayShare(namespace, other)
  const servers = keep(createServers({ ...shared, missingScopes, credentials, builtins, serveApi, mayShare }))
  shared.tenancy.onChange(() => servers.refresh())
  const stored = keep(await StoredContents.open(shared))
  const batches = keep(await BatchBook.open({ ...shared, replica: hostname() }))
  const models = keep(createModels({ ...shared, labelsOf: (caller) => taint.seen(caller), owners: stored }))
  const engineKeys: ModelRoutes['credentials'] = models.credentials
  const contexts = keep(
    await createCtxengine<ModelRoute['endpoints'][0]>({
      ...shared,
      ledgers,
      revocations,
      endpointOf: (route, key) =>
        models.route(shared.snapshots.current, route)?.endpoints.find((one) => one.key === key) ?? null,
      credential: (endpoint, request) => engineKeys.headers(endpoint, { ...request, at: shared.clock.now() }),
    }),
  )
  const agents = keep(
    await createAgents({
      ...shared,
      namedIn: namedInCall,
      mayCall: shared.tenancy.mayCall,
      labels: taint,
    }),
  )
  return { vault, credentials, taint, memory, servers, models, contexts, stored, batches, agents }
}
