import assert from 'node:assert/strict'
import { mkdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { contextList, contextSet, contextUse } from '../context/context.ts'
import { printed } from '../testing/commands.ts'
import { findGateway, useFlags } from './gateway.ts'
import { homeOf, writeHomeEnv } from './home.ts'

let root = ''
let env: NodeJS.ProcessEnv = {}
beforeEach(() => {
  root = tempFolder()
  env = { PLAT_CONTEXTS: join(root, 'contexts.json') }
})

/** A directory with a running plat. */
async function running(name: string): Promise<string> {
  const dir = join(root, name)
  await mkdir(join(dir, '.plat'), { recursive: true, mode: 0o700 })
  const [PLAT_ADMIN_URL, PLAT_GATEWAY_URL] = [`http://${name}:1`, `http://${name}:2`]
  const tokens = { PLAT_ADMIN_TOKEN: `admin-${name}`, PLAT_BROKER_TOKEN: `broker-${name}` }
  await writeHomeEnv(homeOf(dir), { PLAT_ADMIN_URL, PLAT_GATEWAY_URL, PLAT_IDENTITY_URL: 'http://i:3', ...tokens })
  return dir
}

async function tokenFile(text: string): Promise<string> {
  const file = join(root, 'token')
  await writeFile(file, `${text}\n`)
  return file
}

const set = (name: string, given: object) => printed((output) => contextSet(name, given, output, env))
const use = (name?: string) => printed((output) => contextUse(name, output, env))
const found = async (from: string, dir?: string) => {
  const { home, env: at } = await findGateway(dir, { from, env })
  return [home?.dir ?? null, at.PLAT_ADMIN_URL, at.PLAT_ADMIN_TOKEN]
}

test('a gateway is that of -dir, else of the variables, else of the context in use, else of the directory', async () => {
  const [here, there] = [await running('here'), await running('there')]
  assert.deepEqual(await found(here), [here, 'http://here:1', 'admin-here'])
  await set('there', { dir: there })
  assert.deepEqual(await found(here), [there, 'http://there:1', 'admin-there'], 'the only context is in use')
  await set('far', { adminURL: 'https://far.example/', tokenFile: await tokenFile('far-token') })
  await use('far')
  assert.deepEqual(await found(here), [null, 'https://far.example', 'far-token'])
  env.PLAT_ADMIN_URL = 'http://variable'
  assert.deepEqual(await found(here), [null, 'https://far.example', 'far-token'], 'an address alone is not a gateway')
  env.PLAT_ADMIN_TOKEN = 'variable-token'
  assert.deepEqual(await found(here), [null, 'http://variable', 'variable-token'])
  env.PLAT_CONTEXT = 'there'
  assert.deepEqual(await found(here), [there, 'http://there:1', 'admin-there'])
  assert.deepEqual(await found(there, here), [here, 'http://here:1', 'admin-here'])
  for (const name of ['PLAT_CONTEXT', 'PLAT_ADMIN_TOKEN']) delete env[name]
  await use()
  assert.deepEqual(await found(here), [here, 'http://here:1', 'admin-here'])
})

test('flags replace variables, and contradictions are refused', async () => {
  const file = await tokenFile('of-the-flag')
  Object.assign(env, { PLAT_CONTEXT: 'other', PLAT_ADMIN_TOKEN: 'of-the-variable' })
  await useFlags({ adminUrl: 'http://flag', tokenFile: file }, env)
  assert.deepEqual(await found(root), [null, 'http://flag', 'of-the-flag'])
  for (const alone of [{ adminUrl: 'http://a' }, { tokenFile: file }])
    await assert.rejects(() => useFlags(alone, {}), { exitCode: 2, message: / needs / }, 'never another gateway')
  await writeFile(file, '\n')
  await assert.rejects(found(root), /the token file .* is empty/)
  await assert.rejects(() => useFlags({ dir: '.', context: 'a' }, env), { exitCode: 2, message: /leave out -context/ })
  await assert.rejects(() => useFlags({ context: 'a', adminUrl: 'http://b' }, env), { exitCode: 2 })
})

test('contexts are listed without tokens, and stored for their owner only', async () => {
  const file = await tokenFile('secret-token')
  await set('prod', { adminURL: 'https://prod.example', tokenFile: file })
  await set('dev', { dir: root })
  const list = async (format: 'table' | 'name' | 'json') =>
    (await printed((output) => contextList(format, output, env))).text
  assert.equal(await list('name'), 'prod\ndev')
  assert.match(await list('table'), /^prod +yes +https:\/\/prod\.example$/m)
  assert.equal(JSON.parse(await list('json'))[0].current, true)
  assert.doesNotMatch(await list('json'), /secret-token/)
  assert.equal((await stat(join(root, 'contexts.json'))).mode & 0o777, 0o600)
})

test('a wrong context is one line with the next step', async () => {
  const file = await tokenFile('t')
  await set('prod', { adminURL: 'https://prod.example', tokenFile: file })
  await assert.rejects(use('prd'), { message: 'no context "prd"; did you mean prod?' })
  await assert.rejects(set('a b', { dir: root }), { exitCode: 2, message: /cannot be the name of a context/ })
  await assert.rejects(set('a', {}), { exitCode: 2, message: /^name the directory with -dir, or an address/ })
  await assert.rejects(set('a', { dir: root, tokenFile: file }), { exitCode: 2 })
  await assert.rejects(set('a', { adminURL: 'prod', tokenFile: file }), /-admin-url: prod must be a URL/)
  await assert.rejects(set('a', { adminURL: 'https://u:p@prod', tokenFile: file }), /must have no password/)
  await set('gone', { dir: join(root, 'gone') })
  await use('gone')
  await assert.rejects(found(root), /context gone: no running plat in .*; start it with plat up/)
  await set('lost', { adminURL: 'https://prod.example', tokenFile: join(root, 'lost') })
  await use('lost')
  await assert.rejects(found(root), /the token file .*lost cannot be read/)
  await writeFile(join(root, 'contexts.json'), '{')
  await assert.rejects(found(root), /contexts\.json: is not JSON: /)
})
