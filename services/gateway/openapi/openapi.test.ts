import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Validator } from '@seriousme/openapi-schema-validator'
import { adminRoutes } from '../admin/index.ts'
import { openApiDocument } from './document.ts'

/** As it is sent: schemas carry what no JSON has. */
const text = JSON.stringify(openApiDocument('1.2.3'))

test('the document is OpenAPI 3.1', async () => {
  const validator = new Validator()
  const { valid, errors } = await validator.validate(JSON.parse(text))
  assert.ok(valid, JSON.stringify(errors)?.slice(0, 2000))
  assert.equal(validator.version, '3.1')
})

test('it has every route of the table, with parameters and roles, and no other', () => {
  const document: { paths: Record<string, Record<string, Operation>> } = JSON.parse(text)
  const found = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ name: `${method.toUpperCase()} ${path}`, operation })),
  )
  const expected = Object.keys(adminRoutes).map((route) =>
    route.replaceAll(/\/:(\w+)/g, '/{$1}').replace('/*', '/{path}'),
  )
  assert.deepEqual(found.map(({ name }) => name).toSorted(), expected.toSorted())
  assert.ok(
    found.some(({ name }) => name === 'POST /v1/admin/config:bundle'),
    'a colon that stands for itself',
  )
  const ids = new Set(found.map(({ operation }) => operation.operationId))
  assert.equal(ids.size, found.length)
  for (const { name, operation } of found) {
    const named = [...name.matchAll(/\{(\w+)\}/g)].map(([, parameter]) => parameter)
    const declared = (operation.parameters ?? []).filter((one) => one.in === 'path').map((one) => one.name)
    assert.deepEqual(declared, named, name)
    const isOpen = /^GET (\/openapi.json|\/v1\/auth\/config|\/v1\/audit\/jwks)$/.test(name)
    assert.deepEqual(operation.security, isOpen ? [] : [{ bearer: [] }], name)
  }
})

interface Operation {
  readonly operationId: string
  readonly security: readonly object[]
  readonly parameters?: readonly { readonly name: string; readonly in: string }[]
}
