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

/** Who may not do anything any more. */
export interface RevokedUsers {
  revoked(user: string, issuer: string): boolean
  /** Is told of every user who is revoked from now on: `<user>` or `<issuer>#<user>`. */
  follow(tell: (name: string) => void): void
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

/** That users have connected accounts, as objects of a cluster: never a token. */
export interface MirroredAccounts {
  wanted(): readonly MirroredAccount[]
  /** Is told whenever that has changed. */
  follow(tell: () => void): void
}

/** Users' own OAuth tokens (docs/spec/gateway.md, `tokenVault`). */
export interface TokenVault {
  /** What calls of servers with `auth.perUser` show; null: the vault is off. */
  readonly tokens: UserTokens | null
  /** Where browsers reach it; null: the vault is off. */
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
 * The vault, where it is switched on; only then are the libraries of its flows loaded, which take 12 MB. Rejects when a key or the
 * journal cannot be used, and when accounts are sealed with a key that is not listed.
 */
export async function createTokenVault(options: TokenVaultOptions): Promise<TokenVault> {
  if (!options.config.tokenVault.enabled) return OFF
  const { openTokenVault } = await import('./open.ts')
  return openTokenVault(options)
}
