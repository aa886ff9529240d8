import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { TestClock } from '@plat/core'
import { silentLog } from '@plat/process'
import { createFileStore } from '@plat/resources'
import { tempFolder } from '@plat/testkit/local'
import { printed } from '../testing/commands.ts'
import { printSchema, schemaFiles, writeSchemas } from './schema.ts'

const PLAT = path.join(import.meta.dirname, '../bin/plat.mjs')
const PUBLISHED = path.join(import.meta.dirname, '../../../docs/reference/schemas')

test('the published folder holds the schema of every kind and of gateway.json', () => {
  assert.deepEqual(readdirSync(PUBLISHED).toSorted(), [...schemaFiles().keys()].toSorted())
  assert.equal(schemaFiles().size, 11)
})

test('plat schema prints the published schema', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [PLAT, 'schema', 'agent'])
  assert.deepEqual(JSON.parse(stdout), JSON.parse(readFileSync(path.join(PUBLISHED, 'agent.schema.json'), 'utf8')))
})

test('a schema is named by kind, plural or short name, and gateway.json by its file', async () => {
  const titleOf = async (name: string) => JSON.parse((await printed((output) => printSchema(name, output))).text).title
  for (const name of ['ToolPolicy', 'toolpolicy', 'toolpolicies']) assert.equal(await titleOf(name), 'ToolPolicy')
  assert.equal(await titleOf('mcps'), 'MCPServer')
  for (const name of ['gateway', 'gateway.json']) assert.equal(await titleOf(name), 'gateway.json')
})

test('an unknown name is answered with the closest one', async () => {
  const refused = (name: string) => printed((output) => printSchema(name, output))
  await assert.rejects(refused('agnt'), { message: 'no schema is named "agnt"; did you mean Agent?', exitCode: 2 })
  await assert.rejects(refused('quux'), /name one of Agent, MCPServer, .*, gateway$/)
})

test('a resource file that plat writes names the schema beside it, and reads as before', async () => {
  const dir = tempFolder()
  const schemasDir = path.join(dir, '.plat/schemas')
  await writeSchemas(schemasDir)
  const store = createFileStore({
    dir: path.join(dir, 'resources'),
    schemasDir,
    clock: new TestClock(),
    log: silentLog,
  })
  const object = { apiVersion: 'plat.dev/v1alpha1', metadata: { name: 'a', namespace: 'default' } }
  await store.apply({ ...object, kind: 'MCPServer', spec: { url: 'http://a.example/mcp' } }, { owner: 'test' })
  const tier = { ...object, metadata: { name: 't', namespace: '' } }
  await store.apply({ ...tier, kind: 'SovereigntyPolicy', spec: {} }, { owner: 'test' })
  for (const file of ['mcpservers/default/a.yaml', 'sovereigntypolicies/t.yaml']) {
    const written = path.join(dir, 'resources', file)
    const [, schema = ''] = /^# yaml-language-server: \$schema=(\S+)\n/.exec(readFileSync(written, 'utf8')) ?? []
    const { title } = JSON.parse(readFileSync(path.resolve(path.dirname(written), schema), 'utf8'))
    assert.match(readFileSync(written, 'utf8'), new RegExp(`^kind: ${title}$`, 'm'))
  }
  const reopened = createFileStore({ dir: path.join(dir, 'resources'), clock: new TestClock(), log: silentLog })
  assert.equal((await reopened.list('MCPServer', {})).items.length, 1)
  assert.deepEqual(reopened.problems(), [])
  for (const one of [store, reopened]) one.close()
})
