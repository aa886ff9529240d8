import { awsCredentialsOf } from '@plat/http'
import type { GuardConfig } from '../config.ts'
import { bedrockGuardrail } from './bedrock-guardrail.ts'
import { httpJson } from './http-json.ts'
import { lakera } from './lakera.ts'
import { llamaPromptGuard } from './llama-prompt-guard.ts'
import { openaiModeration } from './openai-moderation.ts'
import type { GuardType } from './type.ts'

/** The protocol of a guard, by `guards[].type` (docs/spec/gateway.md). */
export function typeOf(type: GuardConfig['type'], env: NodeJS.ProcessEnv): GuardType {
  switch (type) {
    case 'openai-moderation':
      return openaiModeration
    case 'llama-prompt-guard':
      return llamaPromptGuard
    case 'lakera':
      return lakera
    case 'bedrock-guardrail':
      return bedrockGuardrail(awsCredentialsOf(env))
    case 'http-json':
      return httpJson
  }
}
