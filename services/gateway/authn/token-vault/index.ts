import type { TokenVault } from './open.ts'
import type { TokenVaultOptions } from './options.ts'
import type { ClientSettings, OAuthClient, Outside } from './providers/client.ts'

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

/** Opens a client of an authorization server, and loads its libraries. */
export async function openOAuthClient(settings: ClientSettings, outside: Outside): Promise<OAuthClient> {
  const client = await import('./providers/client.ts')
  return new client.OAuthClient(settings, outside)
}
