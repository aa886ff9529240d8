import type { Manifest } from '@plat/resources'
import type { AuthEntry } from '@plat/resources/rendered'
import { problemLine } from '../validate/problem.ts'
import { serverProblems } from '../validate/server.ts'
import { type ReferencedTexts, sorted } from './declared.ts'
import { OVER_SHARE, piecesOverShare } from './size/shares.ts'

type Server = Manifest<'MCPServer'>

/** Begins the names of the files with the credentials of a server. */
export function credentialKeyOf({ metadata: { namespace, name } }: Server): string {
  return `${namespace}.${name}`
}

/** `MCPServer.spec.auth` as the gateway's registry says it: never a secret, only the name of its files. */
export function authEntry(server: Server): AuthEntry {
  const { spec } = server
  const { type = 'none', headerName, oauth, tokenExchange, perUser, provider } = spec.auth ?? {}
  const user = perUser === true ? { perUser, ...(provider !== undefined && { provider }) } : {}
  if (type === 'none') return { type, ...user }
  if (type === 'tokenExchange') return { type, ...(tokenExchange !== undefined && { tokenExchange }) }
  const filed = { type, credentialKey: credentialKeyOf(server), ...user }
  if (type === 'headerSecret') return { ...filed, ...(headerName !== undefined && { headerName }) }
  if (type !== 'oauthClientCredentials' || oauth === undefined) return filed
  const { clientIdRef: _, clientSecretRef: __, ...grant } = oauth
  return { ...filed, oauth: grant }
}

/** One key of a Secret that the gateway reads as a file. */
interface CredentialFile {
  /** `<namespace>.<name>.<suffix>` */
  readonly file: string
  /** `<namespace>/<secret>/<key>` */
  readonly from: string
  /** The field that requires it. */
  readonly path: string
}

/** Names of the keys of a TLS Secret. */
const TLS_CERTIFICATE = 'tls.crt'
const TLS_KEY = 'tls.key'

/** Secrets that a server needs from its namespace. */
export function credentialFiles({ metadata: { namespace, name }, spec }: Server): CredentialFile[] {
  const { type = 'none', secretRef, oauth, mtls } = spec.auth ?? {}
  const one = (suffix: string, path: string, ref: { readonly name: string; readonly key: string }): CredentialFile => ({
    file: `${namespace}.${name}.${suffix}`,
    from: `${namespace}/${ref.name}/${ref.key}`,
    path: `auth.${path}`,
  })
  if ((type === 'bearerSecret' || type === 'headerSecret') && secretRef !== undefined) {
    return [one('token', 'secretRef', secretRef)]
  }
  if (type === 'oauthClientCredentials' && oauth !== undefined) {
    const { clientIdRef, clientSecretRef } = oauth
    return [
      one('client-id', 'oauth.clientIdRef', clientIdRef),
      one('client-secret', 'oauth.clientSecretRef', clientSecretRef),
    ]
  }
  if (type !== 'mtls' || mtls === undefined) return []
  const secret = mtls.certSecretRef.name
  return [
    one('crt', 'mtls.certSecretRef', { name: secret, key: TLS_CERTIFICATE }),
    one('key', 'mtls.certSecretRef', { name: secret, key: TLS_KEY }),
  ]
}

export interface CredentialOptions {
  /** Bytes of all files; absent: any. */
  readonly maxBytes?: number
  /** Returns the token of the gateway for a stdio server on a cluster. Absent: there are none. */
  readonly stdioTokenOf?: ((server: Server) => string) | undefined
}

interface WantedFile extends CredentialFile {
  readonly server: Server
  /** Absent: there is no such Secret. */
  readonly text?: string | undefined
}

function stdioFiles(server: Server, tokenOf: CredentialOptions['stdioTokenOf']): readonly WantedFile[] {
  if (server.spec.stdio === undefined || tokenOf === undefined) return []
  const file = `${credentialKeyOf(server)}.token`
  return [{ server, file, from: '', path: 'stdio', text: tokenOf(server) }]
}

/**
 * The files of `upstreamCredentialsDir`, from the Secrets that servers name. A server whose Secret is not there, or does not fit
 * into the share that its namespace has of `maxBytes`, is still known: its calls are refused with `upstream_credential`.
 */
export function renderCredentials(
  servers: readonly Server[],
  { texts, withheld }: ReferencedTexts,
  { maxBytes = Number.POSITIVE_INFINITY, stdioTokenOf }: CredentialOptions = {},
): { files: ReadonlyMap<string, string>; refused: string[] } {
  const files = new Map<string, string>()
  const refused: string[] = []
  const good = sorted(servers).filter((server) => serverProblems(server).length === 0)
  const wanted: WantedFile[] = good.flatMap((server) => [
    ...credentialFiles(server).map((file) => ({ server, ...file, text: texts.get(file.from) })),
    ...stdioFiles(server, stdioTokenOf),
  ])
  const pieces = wanted.map(({ server, file, text = '' }) => ({
    key: file,
    namespace: server.metadata.namespace,
    bytes: Buffer.byteLength(text),
  }))
  const over = piecesOverShare(pieces, maxBytes)
  for (const { server, file, from, path, text } of wanted) {
    const why = over.has(file) ? OVER_SHARE : withheld.get(from)
    const cause = why === undefined ? `no Secret ${from}` : `Secret ${from} ${why}`
    if (text !== undefined && !over.has(file)) files.set(file, text)
    else refused.push(problemLine(server, { path, why: `${cause}: calls of this server are refused` }))
  }
  return { files, refused }
}

/** `<namespace>/<configMap>/<key>` of a server's CA bundle; null: it has none. */
export function bundleOf({ metadata, spec }: Server): string | null {
  return spec.caBundleRef === undefined
    ? null
    : `${metadata.namespace}/${spec.caBundleRef.name}/${spec.caBundleRef.key}`
}
