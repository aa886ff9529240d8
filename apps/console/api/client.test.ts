import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { linkTo, readRoute } from '../app/route.ts'
import { refusalOf, urlOf } from './client.ts'
import { typesOfRepository } from './generate.ts'

test('the types of the admin API are those of docs/reference/openapi.json', () => {
  const { file, text } = typesOfRepository()
  assert.equal(readFileSync(file, 'utf8'), text, 'run node apps/console/api/generate.ts')
})

test('a parameter stays one segment of the path, and empty filters are left out', () => {
  assert.equal(
    urlOf('/v1/sessions/{id}/timeline', { id: 'a/b/../c?d#e' }, { limit: 5, cursor: undefined, q: '' }),
    '/v1/sessions/a%2Fb%2F..%2Fc%3Fd%23e/timeline?limit=5',
  )
})

test('the address of a page leads back to the same object', () => {
  for (const id of ['default/assistant/s-1', '../x', '%2F', 'a?b#c', 'ü\u202e']) {
    const { pathname, search } = new URL(linkTo('sessions', id, { q: 'a&b' }), 'http://localhost')
    const { page, id: read, query } = readRoute({ pathname, search })
    assert.deepEqual([page, read, query.get('q')], ['sessions', id, 'a&b'])
  }
  assert.equal(readRoute({ pathname: '/console/sessions/%', search: '' }).id, '%')
})

test('a refusal that requires another login leads there and back', async () => {
  const body = { error: 'step_up_required', message: 'log in again', acr: 'gold', maxAge: 60 }
  const refusal = await refusalOf(Response.json(body, { status: 403 }), '/console/approvals/a')
  assert.equal(refusal.stepUp, '/console/login?to=%2Fconsole%2Fapprovals%2Fa&acr=gold&max_age=60')
  const other = await refusalOf(new Response('<html>', { status: 502 }), '/console/')
  assert.deepEqual([other.status, other.code, other.stepUp], [502, 'http_502', null])
})
