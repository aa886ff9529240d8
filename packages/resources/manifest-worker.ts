import { parentPort } from 'node:worker_threads'
import { linesOf, readManifest } from './manifest.ts'
import type { ManifestQuestion } from './manifest-aside.ts'

/** Worker thread of `readManifestAside` and `linesOfAside`. A thrown error ends it. */
parentPort?.on('message', (question: ManifestQuestion) => {
  const { text } = question
  parentPort?.postMessage('kind' in question ? readManifest(question.kind, text) : linesOf(text, question.paths))
})
