import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock, systemIds } from '@plat/core'
import { silentLog } from '@plat/process'
import { createFileStore } from '../store/file.ts'
import { createResourceApi, type RestRequest, type RestResponse } from './api.ts'
import { type Face, restConformance } from './conformance/suite.ts'

/** The API over a temporary folder, called without a socket. */
async function openFace(): Promise<Face> {
  const root = await mkdtemp(join(tmpdir(), 'plat-'))
  const basics = { clock: systemClock, ids: systemIds(systemClock), log: silentLog }
  const store = createFileStore({ dir: join(root, 'resources'), ...basics })
  const api = createResourceApi({ store, version: '0', ...basics })
  const request = (method: string, path: string, more: Partial<RestRequest>): RestRequest => {
    const { pathname, searchParams } = new URL(path, 'http://localhost')
    return {
      method,
      path: pathname,
      query: searchParams,
      accept: '',
      contentType: 'application/json',
      body: new Uint8Array(0),
      caller: { name: 'test', groups: [], may: () => true },
      signal: new AbortController().signal,
      ...more,
    }
  }
  return {
    async ask(method, path, { body, type = 'application/json', accept = '' } = {}) {
      const bytes = body === undefined ? new Uint8Array(0) : Buffer.from(JSON.stringify(body))
      const answer = await api.handle(request(method, path, { body: bytes, contentType: type, accept }))
      const value: unknown = JSON.parse(JSON.stringify(answer.body))
      return { status: answer.status, body: value, warnings: answer.warnings.map(headerOf) }
    },
    async *watch(path) {
      const left = new AbortController()
      const { body } = await api.handle(request('GET', path, { signal: left.signal }))
      assert.ok(isStream(body), JSON.stringify(body))
      try {
        for await (const line of body) yield JSON.parse(line)
      } finally {
        left.abort()
      }
    },
    async close() {
      store.close()
      await rm(root, { recursive: true })
    },
  }
}

function headerOf(warning: string): string {
  return `299 - "${warning.replaceAll('"', '\\"')}"`
}

function isStream(body: RestResponse['body']): body is AsyncIterable<string> {
  return Symbol.asyncIterator in body
}

restConformance('the resource API', openFace)
