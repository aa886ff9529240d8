import { reasonOf } from '@plat/core'
import type { Log } from '@plat/process'
import type { FastifyInstance } from 'fastify'
import type { AdminRoutes } from '../../admin/index.ts'
import { createAccountRoutes } from './admin.ts'
import { browserCookie } from './flow/browser.ts'
import { Flows } from './flow/flows.ts'
import { Login } from './flow/login.ts'
import type { TokenVaultOptions } from './options.ts'
import { ownerRules } from './owner.ts'
import { Provider } from './providers/provider.ts'
import { RevokedAccounts } from './revoked-accounts.ts'
import { ConnectRoutes } from './routes.ts'
import type { Accounts } from './store/accounts.ts'
import { type MirroredAccount, mirroredAccount } from './store/mirrored.ts'
import { openAccounts } from './store/open-accounts.ts'
import { connectURL, type UserTokens, Vault } from './vault.ts'

/** Connected accounts as cluster objects, without tokens. */
export interface MirroredAccounts {
  wanted(): readonly MirroredAccount[]
  /** Calls `notify` after each change. */
  follow(notify: () => void): void
}

/** OAuth tokens of users (docs/spec/gateway.md, `tokenVault`). */
export interface TokenVault {
  /** Credentials for servers with `auth.perUser`; null: the vault is off. */
  readonly tokens: UserTokens | null
  /** Public base URL of its pages; null: the vault is off. */
  readonly publicURL: URL | null
  /** Mounts the pages of `GET /v1/connect/{provider}`. */
  pages(app: FastifyInstance): void
  readonly routes: AdminRoutes
  readonly mirrored: MirroredAccounts
  close(): Promise<void>
}

/** Opens the vault. Rejects if a key or the journal is unusable, or if accounts are sealed with an unlisted key. */
export async function openTokenVault(options: TokenVaultOptions): Promise<TokenVault> {
  const { accounts, closeJournal } = await openAccounts(options)
  try {
    return await opened(options, accounts, closeJournal)
  } catch (error) {
    await closeJournal()
    throw error
  }
}

async function opened(
  options: TokenVaultOptions,
  accounts: Accounts,
  closeJournal: () => Promise<void>,
): Promise<TokenVault> {
  const { config, ledgers, revokedUsers, leases, clock, log } = options
  const { tokenVault: settings, identity } = config
  const publicURL = new URL(settings.publicBaseURL || identity.resourceBaseURL)
  const base = `${publicURL.origin}${publicURL.pathname.replace(/\/$/, '')}/v1/connect`
  const login = new Login(settings.login, options)
  const providers = new Map(
    settings.providers.map((provider, index) => [
      provider.name,
      new Provider(provider, `tokenVault.providers[${index}]`, { ...options, login }),
    ]),
  )
  const rules = ownerRules(
    settings,
    identity.trustedIssuers.map(({ issuer }) => issuer),
  )
  const vault = new Vault({
    accounts,
    providers,
    rules,
    connectURL: (provider, tenant) => connectURL(base, provider, tenant),
    leases,
    record: (tenant, record) => void ledgers.of(tenant).append(record).catch(unrecorded(log)),
    clock,
    log,
  })
  const removals = await RevokedAccounts.open({ ...options, accounts, vault, keeps: settings.keepOnKillSwitch })
  const pages = new ConnectRoutes({
    vault,
    removals,
    providers,
    login,
    flows: flowsOf(options),
    cookie: browserCookie({ isSecure: publicURL.protocol === 'https:', ttlSeconds: settings.flowTTLSeconds }),
    base,
    realm: rules.realm,
    isRevoked: (user) => revokedUsers.revoked(user, rules.realm),
    log,
  })
  return {
    tokens: vault,
    publicURL,
    pages: (app) => pages.mount(app),
    routes: createAccountRoutes(vault, accounts, log),
    mirrored: {
      wanted: () => accounts.list().map((account) => mirroredAccount(account, settings.mirror.namespace)),
      follow: (notify) => accounts.follow(notify),
    },
    async close() {
      await removals.close()
      await vault.close()
      await accounts.close()
      await closeJournal()
    },
  }
}

function flowsOf({ config, pools, sealer, once, clock, ids }: TokenVaultOptions): Flows {
  const ttlMs = config.tokenVault.flowTTLSeconds * 1000
  return new Flows({ sealer, once, clock, ids, ttlMs, observer: pools?.of('connect_flows') })
}

const unrecorded = (log: Log) => (error: unknown) =>
  log.error({ error: reasonOf(error) }, 'a change of an account could not be recorded in the ledger')
