import { access, readFile } from 'node:fs/promises'
import path from 'node:path'
import { reasonOf } from '@plat/core'
import type { DialOptions } from '@plat/http'

/** Credentials of a request to the API server. */
export interface Credentials {
  /** Names in lower case; empty with a client certificate. */
  readonly headers: Readonly<Record<string, string>>
  /** The same object until a change: it is the key of connections. */
  readonly trust: Pick<DialOptions, 'caPEM' | 'clientCert' | 'serverName'>
}

/** An API server with credentials for it. */
export interface Access {
  /** `https://10.0.0.1:443` */
  readonly server: string
  /** Namespace of the process; null when unknown. */
  readonly namespace: string | null
  /** Called for each request, because tokens and certificates are rotated. Rejects with one line naming the file. */
  credentials(): Promise<Credentials>
}

/** Where Kubernetes puts the service account of a pod. */
const SERVICE_ACCOUNT_DIR = '/var/run/secrets/kubernetes.io/serviceaccount'

export interface AccessOptions {
  readonly env: NodeJS.ProcessEnv
  /** Default: where Kubernetes mounts it. */
  readonly dir?: string
  /** Replaces the address of the cluster; empty or absent: that of the cluster. */
  readonly apiServer?: string
  readonly tokenFile?: string
  readonly caFile?: string
}

/**
 * Returns the API server of the cluster that this process runs in; options override what is mounted. Rejects with one line when something is neither
 * given nor mounted.
 */
export async function clusterAccess(options: AccessOptions): Promise<Access> {
  const { env, dir = SERVICE_ACCOUNT_DIR, apiServer = '', tokenFile = '', caFile = '' } = options
  const file = (name: string) => path.join(dir, name)
  const server = apiServer === '' ? serverOf(env) : new URL(apiServer).origin
  // Outside a cluster nothing is mounted: an API server given there may have a publicly trusted certificate.
  const mounted = apiServer === '' || (await isThere(file('ca.crt'))) ? file('ca.crt') : ''
  const access = fileAccess({ server, tokenFile: tokenFile || file('token'), caFile: caFile || mounted })
  await access.credentials()
  const namespace = await readFile(file('namespace'), 'utf8').catch(() => '')
  return { ...access, namespace: namespace.trim() || null }
}

/** Returns an API server with files for its token and its CA; an empty CA file means the system's. */
export function fileAccess(named: {
  readonly server: string
  readonly tokenFile: string
  readonly caFile: string
}): Access {
  const { server, tokenFile, caFile } = named
  // Plain HTTP has no certificate.
  const authorities = server.startsWith('https:') && caFile !== '' ? { caFile } : {}
  return { server, namespace: null, credentials: fileCredentials({ tokenFile, ...authorities }) }
}

function serverOf({
  KUBERNETES_SERVICE_HOST: host = '',
  KUBERNETES_SERVICE_PORT: port = '',
}: NodeJS.ProcessEnv): string {
  if (host === '' || port === '') {
    throw new Error(
      'not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set, and no API server is named',
    )
  }
  return `https://${host.includes(':') ? `[${host}]` : host}:${port}`
}

function isThere(name: string): Promise<boolean> {
  return access(name).then(
    () => true,
    () => false,
  )
}

/** Credential files; absent: none of that kind. */
export interface CredentialFiles {
  readonly tokenFile?: string
  readonly caFile?: string
  readonly certFile?: string
  readonly keyFile?: string
}

/** Credentials that are read again for each request; `fixed` applies where there is no file. */
export function fileCredentials(
  files: CredentialFiles,
  fixed: { readonly token?: string; readonly trust?: Credentials['trust'] } = {},
): () => Promise<Credentials> {
  let last: Credentials['trust'] = {}
  let mark = ''
  return async () => {
    const [token = fixed.token, caPEM, certPEM, keyPEM] = await Promise.all(
      [files.tokenFile, files.caFile, files.certFile, files.keyFile].map(readCredential),
    )
    const trust = {
      ...fixed.trust,
      ...(caPEM !== undefined && { caPEM }),
      ...(certPEM !== undefined && keyPEM !== undefined && { clientCert: { certPEM, keyPEM } }),
    }
    const now = JSON.stringify(trust)
    if (now !== mark) {
      mark = now
      last = trust
    }
    return { headers: token === undefined ? {} : bearer(token.trim()), trust: last }
  }
}

/** Characters allowed in a header. */
const TOKEN = /^[\x21-\x7e]+$/

function bearer(token: string): Credentials['headers'] {
  if (!TOKEN.test(token)) throw new Error('credentials of the API server: the token file holds no valid token')
  return { authorization: `Bearer ${token}` }
}

async function readCredential(file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    throw new Error(`credentials of the API server: ${reasonOf(error)}`)
  }
}
