# ruff: noqa: E501 - words of a language stand on one line
"""Messages in other languages."""

from __future__ import annotations

from random import Random

from tools.builtin_data.grammar import lines, phrases, words

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

WORDS = {
    "German": words(
        "ich du der die das und nicht ist sind bin hast mir mich dich wie was wo wann warum kann möchte gern ein eine kein mit auf für heute morgen bitte danke Haus Wetter Gedicht Motor Hund Katze Geschichte erzähl schreib mach hilf funktioniert"
    ),
    "French": words(
        "je tu il elle nous vous le la les un une des est suis avez pas que qui quoi où comment pourquoi veux peux avec pour dans bonjour merci maison chat chien histoire raconte écris aujourd'hui demain temps fait s'il plaît"
    ),
    "Spanish": words(
        "yo tú él ella nosotros el la los un una es soy está no que quién qué dónde cómo por para con quiero puedes hola gracias casa perro gato historia cuéntame escribe hoy mañana tiempo hace favor muy bien"
    ),
    "Italian": words(
        "io tu lui lei noi il la gli un una è sono non che chi cosa dove come perché voglio puoi con per in ciao grazie casa cane gatto storia racconta scrivi oggi domani tempo fa favore molto bene sei"
    ),
    "Portuguese": words(
        "eu você ele ela nós o a os um uma é sou não que quem onde como porque quero pode com para em olá obrigado casa cachorro gato história conte escreva hoje amanhã tempo faz favor muito bem"
    ),
    "Dutch": words(
        "ik jij hij zij wij de het een is ben niet wat wie waar hoe waarom wil kan met voor in hallo dank huis hond kat verhaal vertel schrijf vandaag morgen weer graag goed"
    ),
    "Swedish": words(
        "jag du han hon vi en ett är inte vad vem var hur varför vill kan med för hej tack hus hund katt berätta skriv idag imorgon vädret gärna bra"
    ),
    "Polish": words(
        "ja ty on ona my jest jestem nie co kto gdzie jak dlaczego chcę możesz z dla w cześć dzięki dom pies kot opowiedz napisz dziś jutro pogoda proszę dobrze"
    ),
    "Turkish": words(
        "ben sen o biz bir değil ne kim nerede nasıl neden istiyorum var yok ile için merhaba teşekkürler ev köpek kedi hikaye anlat yaz bugün yarın hava lütfen iyi"
    ),
    "Russian": words(
        "я ты он она мы это не что кто где как почему хочу можешь с для в привет спасибо дом собака кошка расскажи напиши сегодня завтра погода пожалуйста хорошо"
    ),
    "Greek": words(
        "εγώ εσύ είναι δεν τι ποιος πού πώς γιατί θέλω με για γεια ευχαριστώ σπίτι σκύλος γάτα σήμερα αύριο καιρός καλά"
    ),
    "Chinese": words("我 你 是 不 什么 谁 哪里 怎么 为什么 想 可以 故事 天气 今天 明天 写 讲 请 谢谢 狗 猫 代码 帮"),
    "Japanese": words(
        "私 あなた は です 何 誰 どこ なぜ 話 天気 今日 明日 ください ありがとう 犬 猫 書いて できますか"
    ),
}


HELLOS = words(
    "hallo bonjour salut hola ciao olá moin servus hej hei ahoj privet merhaba szia salam namaste konnichiwa aloha"
)
FRIENDS = phrases(
    "mein freund, meine freunde, mon ami, mes amis, mi amiga, amigos, bella, amici, a todos, zusammen, à tous, meu amigo, bambino, señor, alle, kamerad"
)


def foreign(rng: Random) -> str:
    """A message in another language: a sentence people write, or a run of its commonest words."""
    roll = rng.random()
    if roll < 0.12:
        return f"{rng.choice(HELLOS)} {rng.choice(FRIENDS)}"
    if roll < 0.5:
        return rng.choice(FOREIGN)
    language = rng.choice(list(WORDS))
    said = rng.choices(WORDS[language], k=rng.randint(3, 7))
    return ("" if language in ("Chinese", "Japanese") else " ").join(said) + rng.choice(("", "?", ".", "!"))
