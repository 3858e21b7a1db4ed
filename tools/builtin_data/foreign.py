"""Messages in other languages."""

from tools.builtin_data.grammar import lines

FOREIGN = lines(
    """
    Guten Tag, wie geht es dir?
    Was ist die Hauptstadt von Frankreich?
    Erzähl mir eine Geschichte
    Wer bist du?
    Wie heißt du?
    Was kannst du?
    Hallo, ich bin neu hier
    Kannst du mir helfen?
    Ich verstehe das nicht
    Sprichst du Deutsch?
    Wie spät ist es?
    Warum ist der Himmel blau?
    Bonjour, comment ça va?
    Quelle est la capitale de l'Italie?
    Raconte-moi une histoire
    Qui es-tu?
    Je ne comprends pas
    Parlez-vous français?
    Comment tu t'appelles?
    Merci beaucoup
    Salut, ça va?
    Pourquoi le ciel est bleu?
    Hola, ¿cómo estás?
    ¿Cuál es la capital de España?
    Cuéntame una historia
    ¿Quién eres?
    No entiendo
    ¿Hablas español?
    Buenos días
    ¿Qué hora es?
    Me llamo Juan
    ¿Puedes ayudarme?
    Ciao, come stai?
    Chi sei?
    Raccontami una storia
    Non capisco
    Parli italiano?
    Come ti chiami?
    Buongiorno a tutti
    Olá, tudo bem?
    Quem é você?
    Conte-me uma história
    Eu não entendo
    Você fala português?
    Hoi, hoe gaat het?
    Wie ben jij?
    Vertel me een verhaal
    Hej, hur mår du?
    Vem är du?
    Cześć, jak się masz?
    Kim jesteś?
    Opowiedz mi historię
    Привет, как дела?
    Кто ты?
    Расскажи мне историю
    Я не понимаю
    Как тебя зовут?
    你好
    你是谁？
    你会说中文吗？
    给我讲个故事
    今天天气怎么样？
    法国的首都是什么？
    こんにちは
    あなたは誰ですか？
    日本語を話せますか？
    元気ですか？
    안녕하세요
    너는 누구니?
    한국어 할 수 있어?
    مرحبا كيف حالك؟
    من أنت؟
    هل تتكلم العربية؟
    नमस्ते, आप कैसे हैं?
    तुम कौन हो?
    Merhaba, nasılsın?
    Sen kimsin?
    Γεια σου, τι κάνεις;
    שלום, מה שלומך?
    Xin chào, bạn khỏe không?
    Bạn là ai?
    Apa kabar?
    Siapa kamu?
    Habari yako?
    Salve, quid agis?
    Saluton, kiel vi fartas?
    Ahoj, jak se máš?
    Szia, hogy vagy?
    Moi, mitä kuuluu?
    Hej, hvordan har du det?
    สวัสดี
    Quis es?
    Dis-moi une blague
    Erzähle einen Witz
    Was ist ein Hund?
    Wo ist der Bahnhof?
    Dónde está la biblioteca
    Was ist Photosynthese?
    Schreibe ein Gedicht
    Qu'est-ce que l'amour?
    """
)
