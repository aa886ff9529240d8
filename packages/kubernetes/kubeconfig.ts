import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { isObject, reasonOf } from '@plat/core'
import { type Access, type CredentialFiles, type Credentials, fileCredentials } from './access.ts'
import { type Members, member, textOf } from './members.ts'
import { readYaml } from './yaml/read.ts'

/** Largest kubeconfig, in characters. */
const MAX_CHARS = 1024 * 1024

/**
 * Returns the API server of a kubeconfig context; '' is the current context. Rejects with one line naming the problem: authentication methods that
 * start a program, or that are unknown, are refused rather than ignored.
 */
export async function kubeconfigAccess(file: string, context = ''): Promise<Access> {
  try {
    return accessOf(await readConfig(file), context, path.dirname(path.resolve(file)))
  } catch (error) {
    throw new Error(`kubeconfig ${file}: ${reasonOf(error)}`)
  }
}

async function readConfig(file: string): Promise<Members> {
  const text = await readFile(file, 'utf8')
  if (text.length > MAX_CHARS) throw new Error(`longer than ${MAX_CHARS} characters`)
  const { value, problems } = readYaml(text)
  const [problem] = problems
  if (problem !== undefined) throw new Error(`line ${problem.line}: ${problem.message}`)
  if (!isObject(value)) throw new Error('no YAML object')
  return value
}

function accessOf(config: Members, wanted: string, dir: string): Access {
  const context = wanted === '' ? textOf(config, 'current-context') : wanted
  if (context === '') throw new Error('has no current-context: name one')
  const chosen = member(named(config, 'contexts', context), 'context')
  const cluster = member(named(config, 'clusters', textOf(chosen, 'cluster')), 'cluster')
  const user = member(named(config, 'users', textOf(chosen, 'user')), 'user')
  const server = textOf(cluster, 'server')
  if (!/^https?:$/.test(URL.parse(server)?.protocol ?? '')) throw new Error(`clusters[${context}].server: no URL`)
  refuseUnknown(cluster, user)
  return {
    server,
    namespace: textOf(chosen, 'namespace') || null,
    credentials: fileCredentials(filesOf(cluster, user, dir), fixedOf(cluster, user)),
  }
}

function named(config: Members, list: string, name: string): Members {
  const entries = config[list]
  const found = (Array.isArray(entries) ? entries : []).filter(isObject).find((entry) => entry.name === name)
  if (found === undefined) throw new Error(`${list}: there is none with the name ${JSON.stringify(name)}`)
  return found
}

const USER_FIELDS: ReadonlySet<string> = new Set([
  ...['token', 'tokenFile', 'client-certificate', 'client-certificate-data', 'client-key', 'client-key-data'],
])

function refuseUnknown(cluster: Members, user: Members): void {
  const strange = Object.keys(user).find((name) => !USER_FIELDS.has(name))
  if (strange !== undefined) {
    throw new Error(`users: ${strange} is not supported: use a token, a tokenFile or a client certificate`)
  }
  for (const name of ['insecure-skip-tls-verify', 'proxy-url']) {
    if (cluster[name] !== undefined && cluster[name] !== false)
      throw new Error(`clusters: ${name} is not supported: name the certificate-authority`)
  }
}

function filesOf(cluster: Members, user: Members, dir: string): CredentialFiles {
  const file = (object: Members, name: string) => {
    const written = textOf(object, name)
    return written === '' ? undefined : path.resolve(dir, written)
  }
  const tokenFile = textOf(user, 'token') === '' ? file(user, 'tokenFile') : undefined
  const caFile = file(cluster, 'certificate-authority')
  const certFile = file(user, 'client-certificate')
  const keyFile = file(user, 'client-key')
  return {
    ...(tokenFile !== undefined && { tokenFile }),
    ...(caFile !== undefined && { caFile }),
    ...(certFile !== undefined && { certFile }),
    ...(keyFile !== undefined && { keyFile }),
  }
}

function fixedOf(cluster: Members, user: Members): { token?: string; trust: Credentials['trust'] } {
  const data = (object: Members, name: string) => Buffer.from(textOf(object, name), 'base64').toString('utf8')
  const caPEM = data(cluster, 'certificate-authority-data')
  const certPEM = data(user, 'client-certificate-data')
  const keyPEM = data(user, 'client-key-data')
  const token = textOf(user, 'token')
  const serverName = textOf(cluster, 'tls-server-name')
  return {
    ...(token !== '' && { token }),
    trust: {
      ...(caPEM !== '' && { caPEM }),
      ...(certPEM !== '' && keyPEM !== '' && { clientCert: { certPEM, keyPEM } }),
      ...(serverName !== '' && { serverName }),
    },
  }
}
