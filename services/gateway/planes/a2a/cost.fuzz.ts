import { runInSlices } from '@plat/core'
import { costTarget, type Families, type Row } from '../../../../test/fuzz/cost.ts'
import { json } from '../../../../test/fuzz/families.ts'
import type { TextRedactor } from '../../call/index.ts'
import { stepless } from '../../call/testing/steps.ts'
import { A2aFrame } from './frame.ts'
import { ownTasks } from './list.ts'
import { readParams } from './message.ts'
import { methodRow } from './methods.ts'
import { inOneForm } from './read.ts'
import { joinedParts } from './redact/parts.ts'
import { responseIn } from './response.ts'
import { isConvertible } from './versions/members.ts'
import { downgradedResponse, upgradedResponse } from './versions/responses.ts'

/** Largest body of a request, by default. Answers may be longer; what they take beside `JSON.parse` is the same part. */
const BODY = 4 * 1024 * 1024

const many = (n: number, size: number, each: (at: number) => string) =>
  Array.from({ length: n / size }, (_, at) => each(at)).join(',')

/** Members in the places where the protocol has its own. */
const within = (before: string, after: string): Families =>
  Object.fromEntries(Object.entries(json).map(([name, make]) => [name, (n: number) => before + make(n) + after]))

const plainPieces = (): TextRedactor => ({ push: stepless, end: () => '' })

/** Messages of A2A 0.3: many parts, names in the other spelling, and any JSON in their places. */
const legacyMessages = (before: string, after: string): Families => {
  const message = (parts: string) =>
    `${before}{"kind":"message","role":"user","messageId":"m","parts":[${parts}]}${after}`
  return {
    ...within(before, after),
    parts: (n) => message(many(n, 28, () => '{"kind":"text","text":"a"}')),
    'parts with numbers': (n) => message(many(n, 36, () => '{"kind":"data","data":{"a":1.0}}')),
    'other spellings': (n) => message(many(n, 48, () => '{"kind":"text","text":"a","media_type":"a"}')),
  }
}

const agentParts: Families = {
  ...within('{"message":{"role":"a","parts":[{"data":', '}]}}'),
  parts: (n) => `{"message":{"role":"a","parts":[${'{"text":"a"},'.repeat(n / 13)}{}]}}`,
  'many lists of parts': (n) => `{${many(n, 45, (at) => `"m${at}":{"parts":[{"text":"a"},{"text":"b"}]}`)}}`,
  'nested parts': (n) =>
    `{"parts":[${`${'{"parts":[{"text":"a"},{"text":"b"},'.repeat(20)}{}${']}'.repeat(20)},`.repeat(n / 780)}{}]}`,
  'reference tasks': (n) => `{"message":{"referenceTaskIds":[${'"a",'.repeat(n / 4)}"b"]}}`,
  'underscored names': (n) => `{"message":{${many(n, 14, (at) => `"m_${at}":1`)}}}`,
}

const agentRows: readonly Row[] = [
  {
    parser: 'messages of A2A',
    limit: BODY,
    families: agentParts,
    prepare: (input) => {
      const params: unknown = JSON.parse(input)
      const row = methodRow('SendMessage')
      return () => (row === null ? null : readParams(params, row, 'SendMessage'))
    },
  },
  {
    parser: 'parts of A2A',
    limit: BODY,
    families: agentParts,
    prepare: (input) => {
      const value: unknown = JSON.parse(input)
      return () => runInSlices(joinedParts(value, plainPieces))
    },
  },
  {
    parser: 'responses of A2A',
    limit: BODY,
    families: within('{"jsonrpc":"2.0","id":1,"result":', '}'),
    run: (input) => responseIn(A2aFrame.body('final', Buffer.from(input))),
  },
  {
    parser: 'requests of A2A 0.3',
    limit: BODY,
    families: legacyMessages('{"jsonrpc":"2.0","id":1,"params":{"message":', '}}'),
    prepare: (input) => {
      const received = JSON.parse(input)
      const bytes = Buffer.from(input)
      return () => {
        try {
          inOneForm(bytes, received, { method: 'SendMessage', version: '0.3' })
        } catch (error) {
          if (!(error instanceof Error) || error.name !== 'VersionError') throw error
        }
      }
    },
  },
  {
    parser: 'responses of A2A 0.3',
    limit: BODY,
    families: legacyMessages('{"jsonrpc":"2.0","id":1,"result":', '}'),
    prepare: (input) => {
      const value: unknown = JSON.parse(input)
      const bytes = Buffer.from(input)
      return () => (isConvertible(value) ? upgradedResponse(bytes, 'SendMessage') : null)
    },
  },
  {
    parser: 'responses for callers of A2A 0.3',
    limit: BODY,
    families: legacyMessages('{"jsonrpc":"2.0","id":1,"result":{"message":', '}}'),
    prepare: (input) => {
      const value: unknown = JSON.parse(input)
      const bytes = Buffer.from(input)
      return () => (isConvertible(value) ? downgradedResponse(bytes, 'SendMessage') : null)
    },
  },
  {
    parser: 'task lists of A2A',
    limit: BODY,
    families: {
      ...json,
      tasks: (n) => `{"result":{"tasks":[${'{"id":"a"},'.repeat(n / 11)}{}],"nextPageToken":"${'a'.repeat(1000)}"}}`,
      'tasks of others': (n) => `{"result":{"tasks":[${'{"id":"a"},{"id":"b"},'.repeat(n / 22)}{}]}}`,
    },
    prepare: (input) => {
      const value: unknown = JSON.parse(input)
      const json = Buffer.from(input)
      return () => ownTasks({ json, value }, { owns: (task) => task === 'a', sealPage: (token) => token })
    },
  },
]

export const target = costTarget('cost/A2A', agentRows)
