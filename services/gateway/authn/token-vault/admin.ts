import { reasonOf, rfc3339 } from '@plat/core'
import type { Log } from '@plat/process'
import { AdminError, type AdminRoutes, page, parameter, queried } from '../../admin/index.ts'
import type { Accounts, StoredAccount } from './store/accounts.ts'
import type { Vault } from './vault.ts'

/** `/v1/accounts`: lists connected accounts and removes them. Never shows a token. */
export function createAccountRoutes(vault: Vault, accounts: Accounts, log: Log): AdminRoutes {
  return {
    mount(context) {
      context.on('GET /v1/accounts', async ({ query }, _reply, caller) => {
        const user = queried(query, 'user')
        const provider = queried(query, 'provider')
        const wanted = accounts
          .list()
          .filter(({ account }) => caller.seesTenant(account.tenant))
          .filter(({ account }) => user === null || account.user === user)
          .filter(({ account }) => provider === null || account.provider === provider)
        return page(wanted.map(accountView), query)
      })
      context.on('DELETE /v1/accounts/:id', async (request, reply, caller) => {
        const account = accounts.byId(parameter(request.params, 'id'))
        if (account === null || !caller.seesTenant(account.account.tenant))
          throw new AdminError('not_found', 'there is no account with this id')
        caller.demandTenant(account.account.tenant)
        const isGone = await vault.remove(account.account, 'removed', { by: caller.by }).catch((error: unknown) => {
          log.error({ account: account.id, error: reasonOf(error) }, 'an account could not be removed')
          throw new AdminError('state_unavailable', 'accounts cannot be stored now')
        })
        if (!isGone) throw new AdminError('not_found', 'there is no account with this id')
        return reply.code(204).send()
      })
    },
  }
}

function accountView({ id, account }: StoredAccount) {
  const { user, realm, provider, scopes, expiresAt, connectedAt } = account
  return {
    id,
    user,
    realm,
    provider,
    scopes,
    expiresAt: expiresAt === null ? null : rfc3339(expiresAt),
    connectedAt: rfc3339(connectedAt),
  }
}
