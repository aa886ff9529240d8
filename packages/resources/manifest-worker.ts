import { parentPort } from 'node:worker_threads'
import { linesOf, readAnyManifest, readManifest } from './manifest.ts'
import type { ManifestRequest } from './manifest-aside.ts'

/** Worker thread of `readManifestAside` and `linesOfAside`. A thrown error ends it. */
parentPort?.on('message', (question: ManifestRequest) => parentPort?.postMessage(answerTo(question)))

function answerTo(question: ManifestRequest): unknown {
  const { text } = question
  if (!('kind' in question)) return linesOf(text, question.paths)
  return question.kind === null ? readAnyManifest(text) : readManifest(question.kind, text)
}
