import { until } from '../until.ts'
import type { Browser, BrowserPage } from './browser.ts'
import { startProviderProcess } from './process.ts'

/** Pages of interaction that one flow has at most. */
const MAX_PAGES = 5

export interface AccountsSetup {
  /** As RFC 7591 says them. */
  readonly clients: readonly Readonly<Record<string, unknown>>[]
  /** A client whose access tokens and ID tokens live for two seconds; those of others for an hour. */
  readonly brief?: string
  /** Gives identity assertions for this client of another authorization server. */
  readonly vouches?: { readonly clientId: string }
  /** A resource whose access tokens are JWTs with this audience, a lifetime in seconds, and the groups of their person. */
  readonly resource?: {
    readonly indicator: string
    readonly audience: string
    readonly groups: Readonly<Record<string, readonly string[]>>
    readonly lifetime?: number
  }
  /** Seconds since the login of these people, as if they had logged in long before; a login that `max_age` requires is fresh. */
  readonly oldLogins?: Readonly<Record<string, number>>
  /** Takes identity assertions of this issuer. */
  readonly believes?: { readonly issuer: string }
}

/** `oidc-provider` in a separate process, where users log in with any name and consent. */
export interface AccountsProvider {
  /** Its issuer, `http://127.0.0.1:<port>`. */
  readonly url: string
  /** Responses of its token endpoint so far: `granted <grant_type>`, `refused <grant_type> <error>`, `believed <person> at <resource>`. */
  lines(): readonly string[]
  /** Ends the account of a person: none of its tokens is good for anything any more. */
  end(person: string): Promise<void>
  close(): Promise<void>
}

/** Starts it on a free port; answers when it listens. */
export async function startAccountsProvider(setup: AccountsSetup): Promise<AccountsProvider> {
  const { url, lines, send, close } = await startProviderProcess('oidc-accounts.mjs', setup)
  return {
    url,
    lines,
    async end(person) {
      send(person)
      await until(() => lines().includes(`ended ${person}`), `${person} to be ended`)
    },
    close,
  }
}

/** Logs in as `person` and consents, on whatever pages the provider shows; answers where it leads then. */
export async function passAs(
  browser: Browser,
  provider: Pick<AccountsProvider, 'url'>,
  person: string,
  stopAt?: (url: URL) => boolean,
): Promise<BrowserPage> {
  let page = browser.page
  for (let pages = 0; pages < MAX_PAGES && page.status !== 0 && page.url.origin === provider.url; pages++) {
    if (!page.text.includes('<form')) break
    const asksName = page.text.includes('name="login"')
    page = await browser.submit(asksName ? { login: person, password: 'any' } : {}, stopAt)
  }
  return page
}
