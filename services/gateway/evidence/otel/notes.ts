import { member } from '@plat/core'
import type { Call, Frame, FrameVerdict } from '../../call/index.ts'
import { type Review, type RunningReview, review } from '../../pipeline/stage.ts'
import { CallTrace, type ResponseNotes } from './context/trace.ts'
import type { Content, ModelFacts, ModelResponse, ModelWords } from './models.ts'

/** Observes responses to calls that have a trace. Changes and delays nothing. */
export function createNotesReview(models: ModelWords, content: Content): Review<'target'> {
  return review({
    name: 'meter',
    needs: ['target'],
    open(call: Call<'target'>) {
      const { trace } = call.wire
      if (!(trace instanceof CallTrace)) return null
      const notes = notesOf(call, models, content)
      trace.notes = notes
      return notes
    },
  })
}

function notesOf(
  { operation, body }: Call,
  models: ModelWords,
  content: Content,
): (RunningReview & ResponseNotes) | null {
  if (operation.startsWith('mcp.')) return new MessageNotes()
  const answer = models.listen(body, content)
  return answer === null ? null : new ModelNotes(answer)
}

class ModelNotes implements RunningReview, ResponseNotes {
  readonly errorType = null
  readonly #answer: ModelResponse

  constructor(answer: ModelResponse) {
    this.#answer = answer
  }

  frame(frame: Frame): FrameVerdict {
    this.#answer.frame(frame)
    return [frame]
  }

  skim(run: Parameters<ModelResponse['skim']>[0]): void {
    this.#answer.skim(run)
  }

  end(): FrameVerdict {
    return []
  }

  facts(): ModelFacts {
    return this.#answer.facts()
  }
}

const ERROR = Buffer.from('"error"')
const IS_ERROR = Buffer.from('"isError"')

/** Observes the last JSON-RPC message of a response (OpenTelemetry's conventions for MCP, `error.type`). */
class MessageNotes implements RunningReview, ResponseNotes {
  errorType: string | null = null

  frame(frame: Frame): FrameVerdict {
    if ((frame.role === 'final' || frame.role === 'error') && mayFail(frame)) this.errorType = errorTypeOf(frame.value)
    return [frame]
  }

  skim(): void {}

  end(): FrameVerdict {
    return []
  }

  facts(): null {
    return null
  }
}

/** Most responses are not errors and need not be parsed. */
function mayFail({ raw }: Frame): boolean {
  if (raw === null) return true
  const view = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)
  return view.includes(ERROR) || view.includes(IS_ERROR)
}

function errorTypeOf(message: unknown): string | null {
  const code = member(member(message, 'error'), 'code')
  if (typeof code === 'number') return String(code)
  return member(member(message, 'result'), 'isError') === true ? 'tool_error' : null
}
