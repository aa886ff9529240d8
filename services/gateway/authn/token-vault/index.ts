import type { Clock, Ids, PoolObservers } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { Ledgers } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { FastifyInstance } from 'fastify'
import type { AdminRoutes } from '../../admin/index.ts'
import type { TokenVaultConfig } from './config.ts'
import type { FlowSealer } from './flow/flows.ts'
import type { MirroredAccount } from './store/mirrored.ts'
import type { UserTokens } from './vault.ts'

/** Revoked users. */
export interface RevokedUsers {
  revoked(user: string, issuer: string): boolean
  /** Calls `notify` with `<user>` or `<issuer>#<user>` for each newly revoked user. */
  follow(notify: (name: string) => void): void
}

export interface TokenVaultOptions {
  readonly pools?: PoolObservers<'connected_accounts' | 'connect_flows'>
  readonly config: {
    readonly auditPath: string
    readonly tokenVault: TokenVaultConfig
    readonly identity: {
      readonly resourceBaseURL: string
      readonly trustedIssuers: readonly { readonly issuer: string }[]
    }
  }
  readonly revokedUsers: RevokedUsers
  readonly sealer: FlowSealer
  readonly ledgers: Ledgers
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly extraCA: string | null
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
}

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

const OFF: TokenVault = {
  tokens: null,
  publicURL: null,
  pages() {},
  routes: { mount() {} },
  mirrored: { wanted: () => [], follow() {} },
  close: () => Promise.resolve(),
}

/**
 * Opens the vault if it is enabled; only then loads the flow libraries, which take 12 MB. Rejects if a key or the journal is unusable,
 * or if accounts are sealed with an unlisted key.
 */
export async function createTokenVault(options: TokenVaultOptions): Promise<TokenVault> {
  if (!options.config.tokenVault.enabled) return OFF
  const { openTokenVault } = await import('./open.ts')
  return openTokenVault(options)
}
