import { hash } from 'node:crypto'

/** A page of the consent flow: plain HTML, no script. */
export interface Page {
  readonly status: number
  readonly html: string
}

const STYLE = `
:root{color-scheme:light dark;font:1.0625rem/1.5 system-ui,sans-serif}
body{margin:0;display:grid;place-items:center;min-height:100vh}
main{max-width:32rem;padding:1.5rem}
h1{font-size:1.5rem;line-height:1.25}
button,.go{font:inherit;padding:.6rem 1.2rem;border-radius:.4rem;border:1px solid currentcolor;background:none;color:inherit;text-decoration:none;display:inline-block;cursor:pointer}
button.first{background:#0b57d0;border-color:#0b57d0;color:#fff}
:focus-visible{outline:3px solid #0b57d0;outline-offset:2px}
dt{font-weight:600}dd{margin:0 0 .5rem}
`

/** No scripts, no external content, no framing; forms post back here. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': `default-src 'none'; style-src 'sha256-${hash('sha256', STYLE, 'base64')}'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'`,
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  // Forms send their origin; other sites get no referrer.
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
}

export interface ConfirmPage {
  readonly user: string
  /** Tenant whose agents may use the account; empty: agents of namespaces without a tenant. */
  readonly tenant: string
  readonly provider: { readonly name: string; readonly title: string; readonly scopes: readonly string[] }
  /** Whether the account is already connected. */
  readonly isConnected: boolean
  /** The sealed flow. */
  readonly flow: string
  /** Target of the form. */
  readonly action: string
}

/** Confirmation before anything happens. Names the user, because the browser may be logged in as another one. */
export function confirmPage({
  user,
  tenant,
  provider: { title, scopes },
  isConnected,
  flow,
  action,
}: ConfirmPage): Page {
  const access = scopes.length === 0 ? '' : `<dt>Requested access</dt><dd>${text(scopes.join(', '))}</dd>`
  const buttons = [
    `<button class="first" name="action" value="connect">${isConnected ? 'Connect again' : 'Connect'}</button>`,
    ...(isConnected ? ['<button name="action" value="disconnect">Disconnect</button>'] : []),
  ]
  return page(200, `Connect your ${title} account?`, [
    `<p>Agents ${ofTenant(tenant)}that act for you will use this account, through the gateway. They never see its password or its tokens.</p>`,
    `<dl><dt>You are logged in as</dt><dd>${text(user)}</dd>${access}</dl>`,
    `<p>If this is not you, close this page.</p>`,
    `<form method="post" action="${text(action)}"><input type="hidden" name="flow" value="${text(flow)}">`,
    `<p>${buttons.join(' ')}</p></form>`,
  ])
}

/** Consent is for one tenant: agents of others cannot use the account. */
function ofTenant(tenant: string): string {
  return tenant === '' ? '' : `of the tenant <strong>${text(tenant)}</strong> `
}

/** Redirects to the provider by a refresh: a redirected form would violate our `form-action` policy. */
export function leavingPage(title: string, to: URL): Page {
  const head = `<meta http-equiv="refresh" content="0; url=${text(to.href)}">`
  const link = `<p><a class="go" href="${text(to.href)}">Continue to ${text(title)}</a></p>`
  return page(200, `Continue to ${title}`, [link], head)
}

export function connectedPage(title: string, user: string): Page {
  return page(200, `${title} is connected`, [
    `<p>Agents that act for <strong>${text(user)}</strong> can now use this account. You can close this page and repeat your request.</p>`,
  ])
}

export function disconnectedPage(title: string, user: string): Page {
  return page(200, `${title} is disconnected`, [
    `<p>Agents that act for <strong>${text(user)}</strong> cannot use this account any more. You can close this page.</p>`,
  ])
}

/** `why`: a complete sentence. `again`: link for another attempt; null: it would not help. */
export function failedPage(status: number, why: string, again: string | null): Page {
  const link = again === null ? '' : `<p><a class="go" href="${text(again)}">Begin again</a></p>`
  return page(status, 'Nothing was connected', [`<p role="alert">${text(why)}</p>`, link])
}

function page(status: number, title: string, body: readonly string[], head = ''): Page {
  const heads = `<meta charset="utf-8"><meta name="viewport" content="width=device-width">${head}<title>${text(title)}</title>`
  const main = `<main><h1>${text(title)}</h1>${body.join('\n')}</main>`
  return {
    status,
    html: `<!doctype html><html lang="en"><head>${heads}<style>${STYLE}</style></head><body>${main}</body></html>`,
  }
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Escapes text for element content and quoted attributes. */
function text(value: string): string {
  return value.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '')
}
