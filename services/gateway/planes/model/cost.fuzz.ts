import { runInSlices } from '@plat/core'
import { costTarget, type Families } from '../../../../test/fuzz/cost.ts'
import type { TextRedactor } from '../../call/index.ts'
import { stepless } from '../../call/testing/steps.ts'
import { generateContent } from './dialects/generate.ts'
import { ContentTexts } from './redact/content-texts.ts'
import { readModelBody } from './request.ts'
import { readContents } from './translate/gemini-request.ts'
import { UntranslatableError } from './translate/prompt.ts'

/** Largest body of a request, by default, in bytes. */
const BODY = 4 * 1024 * 1024

const requests: Families = {
  contents: (n) => `{"contents":[${'{"parts":[{"text":"a"}]},'.repeat(n / 26)}{"parts":[]}]}`,
  parts: (n) => `{"contents":[{"parts":[${'{"text":"a"},'.repeat(n / 13)}{"text":"a"}]}]}`,
  members: (n) => `{"contents":[{"parts":[{${Array.from({ length: n / 12 }, (_, at) => `"m${at}":1`).join(',')}}]}]}`,
  calls: (n) =>
    `{"contents":[{"role":"model","parts":[${'{"functionCall":{"name":"a","args":{}}},'.repeat(n / 41)}{"text":"a"}]}]}`,
  results: (n) =>
    `{"contents":[{"role":"model","parts":[${'{"functionCall":{"name":"a"}},'.repeat(9_000)}{"text":"a"}]},{"parts":[${'{"functionResponse":{"name":"a"}},'.repeat(n / 35)}{"text":"a"}]}]}`,
}

/** Passes every piece on. */
const pieces = (): TextRedactor => ({ push: stepless, end: () => '' })
const redactor = { steps: stepless, message: (bytes: Uint8Array) => bytes, pieces }

export const target = costTarget('cost/gateway models of Google', [
  {
    parser: 'requests to models',
    part: 'generateContent',
    limit: BODY,
    families: requests,
    run: (input) => readModelBody(Buffer.from(input), generateContent),
  },
  {
    parser: 'translation for models',
    part: 'generateContent',
    limit: BODY,
    families: requests,
    prepare: (input) => {
      const value = JSON.parse(input)
      return () => {
        try {
          readContents(value, [], false)
        } catch (error) {
          if (!(error instanceof UntranslatableError)) throw error
        }
      }
    },
  },
  {
    parser: 'chunks of models',
    part: 'generateContent',
    limit: BODY,
    families: {
      parts: (n) => `{"candidates":[{"content":{"parts":[${'{"text":"a"},'.repeat(n / 13)}{}]}}]}`,
      candidates: (n) => `{"candidates":[${'{"content":{"parts":[{"text":"a"}]}},'.repeat(n / 38)}{}]}`,
    },
    prepare: (input) => {
      const value = JSON.parse(input)
      return () => runInSlices(new ContentTexts(redactor).take(value))
    },
  },
])
