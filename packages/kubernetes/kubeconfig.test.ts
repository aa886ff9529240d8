import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { clusterAccess } from './access.ts'
import { kubeconfigAccess } from './kubeconfig.ts'

async function folder(t: TestContext) {
  const dir = await mkdtemp(path.join(tmpdir(), 'plat-'))
  t.after(() => rm(dir, { recursive: true }))
  const put = async (name: string, text: string) => {
    await writeFile(path.join(dir, name), text)
    return path.join(dir, name)
  }
  return { dir, put }
}

const config = (user: string, cluster = 'certificate-authority: ca.crt') => `
current-context: one
contexts:
  - {name: one, context: {cluster: c, user: u, namespace: team}}
  - {name: other, context: {cluster: c, user: u}}
clusters:
  - {name: c, cluster: {server: 'https://api.example:6443', ${cluster}}}
users:
  - {name: u, user: {${user}}}
`

const base64 = (text: string) => Buffer.from(text).toString('base64')

test('a context names a server, a namespace and credentials, whose files are read for each request', async (t) => {
  const { put } = await folder(t)
  await put('ca.crt', 'CA')
  await put('token', 'first\n')
  const access = await kubeconfigAccess(await put('config', config('tokenFile: token')))
  assert.deepEqual([access.server, access.namespace], ['https://api.example:6443', 'team'])
  const first = await access.credentials()
  assert.deepEqual(first, { headers: { authorization: 'Bearer first' }, trust: { caPEM: 'CA' } })
  await put('token', 'second\n')
  const second = await access.credentials()
  assert.equal(second.headers.authorization, 'Bearer second')
  // Connections are keyed by this object: it is the same until a change.
  assert.equal(second.trust, first.trust)
  await put('ca.crt', 'CB')
  assert.deepEqual((await access.credentials()).trust, { caPEM: 'CB' })
})

test('a client certificate, a server name and a selected context are used', async (t) => {
  const { put } = await folder(t)
  const user = `client-certificate-data: ${base64('CERT')}, client-key-data: ${base64('KEY')}`
  const cluster = `certificate-authority-data: ${base64('CA')}, tls-server-name: kubernetes`
  const access = await kubeconfigAccess(await put('config', config(user, cluster)), 'other')
  assert.equal(access.namespace, null)
  assert.deepEqual(await access.credentials(), {
    headers: {},
    trust: { caPEM: 'CA', serverName: 'kubernetes', clientCert: { certPEM: 'CERT', keyPEM: 'KEY' } },
  })
})

test('an unknown field is refused by its name, never ignored', async (t) => {
  const { put } = await folder(t)
  const why = async (text: string, context?: string) => {
    const file = await put('config', text)
    return kubeconfigAccess(file, context).then(
      () => 'accepted',
      (error: Error) => error.message.replace(`kubeconfig ${file}: `, ''),
    )
  }
  assert.equal(
    await why(config('exec: {command: login}')),
    'users: exec is not supported: use a token, a tokenFile or a client certificate',
  )
  assert.match(
    await why(config('token: t', 'insecure-skip-tls-verify: true')),
    /insecure-skip-tls-verify is not supported/,
  )
  assert.match(await why(config('token: t'), 'nowhere'), /^contexts: there is none with the name "nowhere"$/)
  assert.match(await why('contexts: []'), /has no current-context/)
  assert.match(await why('- 1'), /no YAML object/)
  assert.match(await why(config('token: t').replace('https://', 'ftp://')), /server: no URL/)
  await assert.rejects(kubeconfigAccess('/nowhere/config'), /^Error: kubeconfig \/nowhere\/config: ENOENT/)
})

test("in a cluster the pod's service account is used; outside it the error names what is missing", async (t) => {
  const { dir, put } = await folder(t)
  const env = { KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443' }
  await assert.rejects(clusterAccess({ env: {}, dir }), /not in a cluster: KUBERNETES_SERVICE_HOST/)
  await assert.rejects(clusterAccess({ env, dir }), /credentials of the API server: ENOENT/)
  await put('token', 'T')
  await put('ca.crt', 'CA')
  await put('namespace', 'plat-system\n')
  const access = await clusterAccess({ env, dir })
  assert.deepEqual([access.server, access.namespace], ['https://10.0.0.1:443', 'plat-system'])
  assert.deepEqual(await access.credentials(), { headers: { authorization: 'Bearer T' }, trust: { caPEM: 'CA' } })
  const six = await clusterAccess({ env: { ...env, KUBERNETES_SERVICE_HOST: 'fd00::1' }, dir })
  assert.equal(six.server, 'https://[fd00::1]:443')
})
