import { reasonOf } from '@plat/core'
import { openFileJournal } from '@plat/state'
import { createAccountRoutes } from './admin.ts'
import { browserCookie } from './flow/browser.ts'
import { Flows } from './flow/flows.ts'
import { Login } from './flow/login.ts'
import type { RevokedUsers, TokenVault, TokenVaultOptions } from './index.ts'
import { ownerRules } from './owner.ts'
import { Provider } from './providers/provider.ts'
import { ConnectRoutes } from './routes.ts'
import { decodeEvent } from './store/account.ts'
import { Accounts } from './store/accounts.ts'
import { openEnvelope } from './store/envelope.ts'
import { mirroredAccount } from './store/mirrored.ts'
import { connectURL, Vault } from './vault.ts'

/** Opens the vault. Rejects if a key or the journal is unusable, or if accounts are sealed with an unlisted key. */
export async function openTokenVault(options: TokenVaultOptions): Promise<TokenVault> {
  const { config, clock, ids, log } = options
  const vault = config.tokenVault
  const envelope = await openEnvelope(vault, ids)
  const path = vault.storePath || `${config.auditPath}.vault.jsonl`
  const journal = await openFileJournal({ path, clock, decode: decodeEvent })
  const onFault = (error: unknown) => log.error({ error: reasonOf(error) }, 'the journal of the token vault failed')
  const observer = options.pools?.of('connected_accounts')
  const accounts = new Accounts({ journal, envelope, onFault, onRefused: (bound) => observer?.refused(bound) })
  observer?.watch(() => accounts.size)
  try {
    await accounts.open()
    return await opened(options, accounts, () => journal.close())
  } catch (error) {
    await journal.close()
    throw error
  }
}

async function opened(
  options: TokenVaultOptions,
  accounts: Accounts,
  closeJournal: () => Promise<void>,
): Promise<TokenVault> {
  const { config, ledgers, revokedUsers, clock, log } = options
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
  const unrecorded = (error: unknown) =>
    log.error({ error: reasonOf(error) }, 'a change of an account could not be recorded in the ledger')
  const vault = new Vault({
    accounts,
    providers,
    rules,
    connectURL: (provider, tenant) => connectURL(base, provider, tenant),
    record: (tenant, record) => void ledgers.of(tenant).append(record).catch(unrecorded),
    clock,
    log,
  })
  if (!settings.keepOnKillSwitch) await followRevoked(revokedUsers, vault, accounts)
  const pages = new ConnectRoutes({
    vault,
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
      wanted: () => accounts.list().map((kept) => mirroredAccount(kept, settings.mirror.namespace)),
      follow: (notify) => accounts.follow(notify),
    },
    async close() {
      await vault.close()
      await accounts.close()
      await closeJournal()
    },
  }
}

function flowsOf({ config, pools, sealer, clock, ids }: TokenVaultOptions): Flows {
  const ttlMs = config.tokenVault.flowTTLSeconds * 1000
  return new Flows({ sealer, clock, ids, ttlMs, observer: pools?.of('connect_flows') })
}

/** Removes accounts of users that are already revoked, then follows new revocations. */
async function followRevoked(users: RevokedUsers, vault: Vault, accounts: Accounts): Promise<void> {
  users.follow((name) => void vault.removeUser(name))
  const revoked = accounts.list().filter(({ account: { user, realm } }) => users.revoked(user, realm))
  await vault.removeAll(revoked)
}
