import { type IncomingHttpHeaders, request } from 'node:http'

/** Redirects in a row that a browser follows. */
const MAX_HOPS = 20

/** Page shown by a browser after a navigation. */
export interface BrowserPage {
  readonly url: URL
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** Every address on the way, the last one included. */
  readonly way: readonly string[]
}

interface Cookie {
  readonly value: string
  readonly host: string
  readonly path: string
  readonly isSecure: boolean
}

/**
 * A browser without screen and script: cookies by the rules of RFC 6265 as far as tests need them, redirects, refreshing pages,
 * links and forms. `places` says where origins that exist in the test alone are served.
 */
export class Browser {
  readonly #places: ReadonlyMap<string, string>
  readonly #cookies = new Map<string, Cookie>()
  #page: BrowserPage | null = null

  constructor(places: Readonly<Record<string, string>> = {}) {
    this.#places = new Map(Object.entries(places))
  }

  /** The page that it shows. */
  get page(): BrowserPage {
    if (this.#page === null) throw new Error('the browser shows nothing yet')
    return this.#page
  }

  /** Opens an address, from another site or by hand, and goes where it is led. `stopAt`: not any further than there. */
  async open(url: string | URL, stopAt?: (url: URL) => boolean): Promise<BrowserPage> {
    return this.#go(new URL(url), { stopAt })
  }

  /** Sends the form of the page, with its hidden fields and these; `button` by its value. */
  async submit(fields: Readonly<Record<string, string>>, stopAt?: (url: URL) => boolean): Promise<BrowserPage> {
    const { text, url } = this.page
    const form = /<form[^>]*>[\s\S]*?<\/form>/.exec(text)?.[0] ?? ''
    const action = attribute(/<form[^>]*>/.exec(form)?.[0] ?? '', 'action')
    if (action === null) throw new Error(`there is no form on ${url}:\n${text}`)
    const body = new URLSearchParams()
    for (const [input] of form.matchAll(/<input[^>]*>/g)) {
      const name = attribute(input, 'name')
      if (name !== null) body.set(name, attribute(input, 'value') ?? '')
    }
    for (const [name, value] of Object.entries(fields)) body.set(name, value)
    return this.#go(new URL(action, url), { body: body.toString(), stopAt })
  }

  /** Forgets what it was given by all hosts, or by one. */
  forget(host?: string): void {
    for (const [key, cookie] of this.#cookies) if (host === undefined || cookie.host === host) this.#cookies.delete(key)
  }

  /** The cookies that a host has set, by name. */
  cookies(host: string): Readonly<Record<string, string>> {
    const theirs = [...this.#cookies].filter(([, cookie]) => cookie.host === host)
    return Object.fromEntries(theirs.map(([key, { value }]) => [key.slice(key.lastIndexOf(' ') + 1), value]))
  }

  async #go(
    start: URL,
    { body, stopAt = () => false }: { body?: string; stopAt?: ((url: URL) => boolean) | undefined },
  ): Promise<BrowserPage> {
    const way: string[] = []
    let url = start
    let form = body
    for (let hop = 0; hop < MAX_HOPS; hop++) {
      way.push(url.href)
      if (stopAt(url)) return { url, status: 0, headers: {}, text: '', way }
      const answer = await this.#send(url, form)
      const next = nextOf(answer, url)
      if (next === null) {
        this.#page = { url, ...answer, way }
        return this.#page
      }
      form = undefined
      url = next
    }
    throw new Error(`led in circles:\n${way.join('\n')}`)
  }

  #send(url: URL, body: string | undefined): Promise<Omit<BrowserPage, 'url' | 'way'>> {
    const place = new URL(this.#places.get(url.origin) ?? url.origin)
    const cookie = this.#cookieFor(url)
    const headers = {
      host: url.host,
      ...(cookie !== '' && { cookie }),
      ...(body !== undefined && { 'content-type': 'application/x-www-form-urlencoded', origin: this.page.url.origin }),
    }
    const { hostname, port } = place
    return new Promise((resolve, reject) => {
      const path = url.pathname + url.search
      const sent = request(
        { hostname, port, path, method: body === undefined ? 'GET' : 'POST', headers },
        (response) => {
          const chunks: Buffer[] = []
          response.on('data', (chunk: Buffer) => chunks.push(chunk))
          response.on('error', reject)
          response.on('end', () => {
            for (const line of response.headers['set-cookie'] ?? []) this.#take(line, url)
            const { statusCode: status = 0 } = response
            resolve({ status, headers: response.headers, text: Buffer.concat(chunks).toString('utf8') })
          })
        },
      )
      sent.on('error', reject)
      sent.end(body)
    })
  }

  #cookieFor(url: URL): string {
    const mine = [...this.#cookies].filter(
      ([, { host, path, isSecure }]) =>
        host === url.hostname && url.pathname.startsWith(path) && (!isSecure || isTrustworthy(url)),
    )
    return mine.map(([key, { value }]) => `${key.slice(key.lastIndexOf(' ') + 1)}=${value}`).join('; ')
  }

  #take(line: string, url: URL): void {
    const [pair = '', ...attributes] = line.split(/;\s*/)
    const at = pair.indexOf('=')
    const [name, value] = [pair.slice(0, at), pair.slice(at + 1)]
    const isLabelled = (word: string) => {
      const found = attributes.find((one) => one.toLowerCase().startsWith(`${word}=`))
      return found?.slice(word.length + 1) ?? null
    }
    const isSecure = attributes.some((one) => one.toLowerCase() === 'secure')
    const path = isLabelled('path') ?? '/'
    if (name.startsWith('__Host-') && (!isSecure || path !== '/' || isLabelled('domain') !== null)) return
    if (isSecure && !isTrustworthy(url)) return
    const key = `${url.hostname} ${path} ${name}`
    const isGone = isLabelled('max-age') === '0' || Date.parse(isLabelled('expires') ?? '') <= 0 || value === ''
    if (isGone) this.#cookies.delete(key)
    else this.#cookies.set(key, { value, host: url.hostname, path, isSecure })
  }
}

/** Browsers take cookies marked as secure over TLS and from loopback hosts (Secure Contexts, section 3.1). */
function isTrustworthy({ protocol, hostname }: URL): boolean {
  return protocol === 'https:' || hostname === 'localhost' || hostname.startsWith('127.')
}

/** Where a page leads by itself. */
function nextOf({ status, headers, text }: Omit<BrowserPage, 'url' | 'way'>, url: URL): URL | null {
  if (status >= 300 && status < 400 && headers.location !== undefined) return new URL(headers.location, url)
  const refresh = /<meta[^>]*http-equiv="refresh"[^>]*>/.exec(text)?.[0]
  const target = refresh === undefined ? undefined : /url=(.*)$/.exec(attribute(refresh, 'content') ?? '')?.[1]
  return target === undefined ? null : new URL(target, url)
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }

function attribute(tag: string, name: string): string | null {
  const found = new RegExp(`\\s${name}="([^"]*)"`).exec(tag)?.[1]
  return found?.replace(/&(amp|lt|gt|quot|#39);/g, (_, entity: string) => ENTITIES[entity] ?? '') ?? null
}
