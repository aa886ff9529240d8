import { createHash, createHmac } from 'node:crypto'
import { createSelfSigned, type SelfSigned } from '@plat/keys'
import type { Manifest } from '@plat/resources'

type Server = Manifest<'MCPServer'>
/** The name of a server. */
type Named = { readonly metadata: Pick<Server['metadata'], 'namespace' | 'name'> }

/** Settings of the Deployments that run stdio servers. */
export interface StdioSettings {
  /** plat's image, from which the bridge is copied into the pods. */
  readonly bridgeImage: string
  /** Labels of the gateway's pods, which are in the operator's namespace. */
  readonly gatewayLabels: Readonly<Record<string, string>>
}

/** Settings of stdio servers, with the secret of the cluster. */
export interface StdioPlace extends StdioSettings {
  /** Secret of the operator from which every token and key is derived, so that none of them has to be read back. */
  readonly key: Uint8Array
}

/** Port of the bridges. */
export const STDIO_PORT = 8443

const NAME_PREFIX = 'plat-stdio-'
/** Longest name of a Service. */
const NAME_MAX = 63
const DIGEST_CHARS = 10
const LABEL = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/

/** Names every object of a server: `plat-stdio-<name>`, with a digest where that is no name of a Service. */
export function stdioNameOf({ metadata: { name } }: Named): string {
  const plain = `${NAME_PREFIX}${name}`
  if (plain.length <= NAME_MAX && LABEL.test(name)) return plain
  const digest = createHash('sha256').update(name).digest('hex').slice(0, DIGEST_CHARS)
  const readable = plain.replace(/[^-a-z0-9]/g, '-').slice(0, NAME_MAX - DIGEST_CHARS - 1)
  return `${readable}-${digest}`
}

function hostOf(server: Server): string {
  return `${stdioNameOf(server)}.${server.metadata.namespace}.svc`
}

/** Address at which the gateway reaches the bridge of a server. */
export function stdioUrlOf(server: Server): string {
  const { namespace, name } = server.metadata
  return `https://${hostOf(server)}:${STDIO_PORT}/${namespace}/${name}`
}

function derived({ key }: Pick<StdioPlace, 'key'>, purpose: string, text: string): Buffer {
  return createHmac('sha256', key).update(`${purpose}\n${text}`).digest()
}

/** Returns the token that the gateway presents to the bridge of a server. */
export function stdioTokenOf(place: Pick<StdioPlace, 'key'>, { metadata: { namespace, name } }: Named): string {
  return derived(place, 'token', `${namespace}/${name}`).toString('base64url')
}

/** Digest of something secret that no one can guess by trying values. */
export function stdioDigestOf(place: Pick<StdioPlace, 'key'>, text: string): string {
  return derived(place, 'digest', text).toString('hex')
}

const NOT_BEFORE = Date.UTC(2026, 0, 1)
/** The gateway trusts exactly this certificate, and another key of the operator replaces it. */
const NOT_AFTER = Date.UTC(9999, 11, 31, 23, 59, 59)
const SERIAL_BYTES = 16

/** Certificates by manifest, with the key that they were derived from: each rendering needs them again. */
const certificates = new WeakMap<Server, { readonly key: Uint8Array; readonly made: SelfSigned }>()

/** Returns the certificate and private key of the bridge of a server. */
export function stdioCertificateOf(place: Pick<StdioPlace, 'key'>, server: Server): SelfSigned {
  const known = certificates.get(server)
  if (known !== undefined && Buffer.from(known.key).equals(place.key)) return known.made
  const host = hostOf(server)
  const made = createSelfSigned({
    name: 'plat stdio bridge',
    hosts: [host],
    notBefore: NOT_BEFORE,
    notAfter: NOT_AFTER,
    serial: derived(place, 'serial', host).subarray(0, SERIAL_BYTES),
    seed: derived(place, 'tls', host),
  })
  certificates.set(server, { key: place.key, made })
  return made
}
