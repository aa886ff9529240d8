import type { FastifyReply, FastifyRequest } from 'fastify'

/** A file of the console, as `apps/console` builds it. */
export interface ConsoleAsset {
  /** `index.html`, `assets/main.<hash>.js`. */
  readonly path: string
  readonly type: string
  readonly bytes: Uint8Array
  /** Compressed; null: it would be no smaller. */
  readonly brotli: Uint8Array | null
  readonly gzip: Uint8Array | null
  /** Its path contains a hash of its content. */
  readonly immutable: boolean
}

export type LoadAssets = () => Promise<readonly ConsoleAsset[]>

/** Paths that are files and never pages. */
const FILE = /^assets(?:\/|$)|\.(?:js|mjs|css|map|json|svg|png|ico|woff2?|txt|webmanifest)$/

/** Headers of everything below `/console/` (docs/console.md, "Security"). */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "font-src 'self'",
    "connect-src 'self'",
    "worker-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'permissions-policy':
    'camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), publickey-credentials-get=(), serial=(), usb=()',
}

/** Serves the files of the console. They are loaded at the first request. */
export class Assets {
  readonly #load: LoadAssets
  #loading: Promise<ReadonlyMap<string, ConsoleAsset>> | null = null

  constructor(load: LoadAssets) {
    this.#load = load
  }

  /** Sends the file of a path below `/console/`; a path of a page is answered with `index.html`, whose script shows it. False: there is none. */
  async send(path: string, request: FastifyRequest, reply: FastifyReply): Promise<boolean> {
    const assets = await this.#assets()
    const asset = assets.get(path) ?? (FILE.test(path) ? undefined : assets.get('index.html'))
    if (asset === undefined) return false
    const coded = codedFor(asset, request.headers['accept-encoding'])
    reply.headers({
      'content-type': asset.type,
      'cache-control': asset.immutable ? 'public, max-age=31536000, immutable' : 'no-store',
      vary: 'accept-encoding',
    })
    if (coded.coding !== null) reply.header('content-encoding', coded.coding)
    await reply.send(coded.bytes)
    return true
  }

  #assets(): Promise<ReadonlyMap<string, ConsoleAsset>> {
    this.#loading ??= this.#load().then(
      (assets) => new Map(assets.map((asset) => [asset.path, asset])),
      (error: unknown) => {
        this.#loading = null
        throw error
      },
    )
    return this.#loading
  }
}

/** The smallest form that the browser accepts. */
function codedFor({ bytes, brotli, gzip }: ConsoleAsset, accepted: string | undefined) {
  if (brotli !== null && accepts(accepted, 'br')) return { coding: 'br', bytes: brotli }
  if (gzip !== null && accepts(accepted, 'gzip')) return { coding: 'gzip', bytes: gzip }
  return { coding: null, bytes }
}

/** RFC 9110, section 12.5.3; `*` alone selects nothing. */
function accepts(header = '', coding: string): boolean {
  return header.split(',').some((entry) => {
    const [name = '', ...parameters] = entry
      .toLowerCase()
      .split(';')
      .map((part) => part.trim())
    return name === coding && !parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter))
  })
}
