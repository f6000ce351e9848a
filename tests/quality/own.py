"""Test collections that are always there: a town's handbook and a few notes in other languages, written for this.

Some words are everywhere, some in one text alone; some questions share words with their answer, some only a stem, and
some names and numbers mean nothing to an embedding model; some answers are short beside long texts that mention the
same things.
"""

from collections.abc import Mapping, Sequence

from tests.quality.corpora import Corpus

_HANDBOOK: Sequence[tuple[str, Sequence[str]]] = [
    (
        "Household waste is collected on Monday mornings. Put the grey bin at the kerb before six o'clock.",
        ["grey bins kerb"],
    ),
    (
        "Glass, paper and tins go into the green container at the market place, which is emptied twice a week.",
        ["Where can I recycle empty bottles?", "emptying of the green containers"],
    ),
    (
        "The town library lends books for four weeks. A loan can be extended twice unless another reader waits for it.",
        ["extending loans", "renew the reading time of a book in the town"],
    ),
    (
        "Reader's cards of the town library cost nothing for children, pupils and the unemployed; others pay twelve "
        "crowns a year.",
        ["readers' card of the library, price"],
    ),
    (
        "The swimming bath opens in May. The water of the outdoor pool is heated to twenty-four degrees.",
        ["How warm is the water people swim in?", "heating of the pool"],
    ),
    (
        "Drinking water in the town comes from the Linnet springs and is tested every week. It is hard water: sixteen "
        "degrees.",
        ["Is it safe to drink from the tap?", "Linnet springs", "hardness of the water in the town"],
    ),
    (
        "Water meters are read in November. Send the reading by post card with form K-17, or hand it in at the town "
        "hall.",
        ["form K-17", "reading the water meter of a house"],
    ),
    (
        "A burst water main is reported to the standby service of the water works, day and night.",
        ["standby service"],
    ),
    (
        "Dogs older than three months are registered at the town hall, window four. The tax is thirty crowns for the "
        "first dog and sixty for each further one.",
        ["registering dogs", "taxes on further dogs"],
    ),
    (
        "Weddings are held in the small hall of the town hall on Fridays and Saturdays. The registrar needs both "
        "birth certificates six weeks before.",
        ["Which papers do we need to get married?", "registrar's weddings on Saturdays"],
    ),
    (
        "A passport is applied for in person at window two of the town hall. Bring a photograph that is not older "
        "than six months. It is ready after three weeks; an express passport after three days costs more.",
        ["express passports", "photographs for a passport"],
    ),
    (
        "Whoever moves into the town registers the new address within fourteen days. The landlord confirms the move "
        "on form W-2.",
        ["I have a new flat, what should I do?", "form W-2", "confirmation by landlords"],
    ),
    (
        "Parking in the old town needs a resident's permit. Visitors leave their cars at the river car park, from "
        "where a bus goes every ten minutes.",
        ["Where can tourists leave their vehicle?", "permits of residents", "river car park bus"],
    ),
    (
        "Bus line 7 runs between the railway station and the hospital every quarter of an hour, on Sundays every "
        "hour. Bus line 9 is the night bus.",
        ["line 9", "buses to the hospital on Sunday"],
    ),
    (
        "The night bus stops wherever a passenger asks it to, so that nobody has a long way home in the dark.",
        ["stops of the night bus"],
    ),
    (
        "Bicycles are rented at the railway station: a day costs nine crowns, a week forty. Helmets are lent with "
        "them.",
        ["Hiring a bike for a few days", "lending of helmets"],
    ),
    (
        "Snow is cleared from pavements by the owners of the houses, by seven in the morning on working days. Salt is "
        "forbidden; use sand or gravel.",
        ["clearing snow", "salting the pavement", "gravel for the houses of the town in the morning"],
    ),
    (
        "A building permit is needed for every house, garage and wall above two metres. Send three copies of the "
        "drawings with form B-3; a decision takes about two months.",
        ["Am I allowed to add a garage?", "form B-3", "copies of a drawing"],
    ),
    (
        "Trees with a trunk of more than sixty centimetres around may be felled only with a permit, and never between "
        "March and September, when birds nest.",
        [
            "May I cut down the old oak behind my house?",
            "felling of trees",
            "nesting birds",
            "oak trunk and house in the town, a permit",
        ],
    ),
    (
        "Allotment gardens are let by the gardeners' association for five years. The waiting list is long; families "
        "with children come first.",
        ["waiting lists for a garden"],
    ),
    (
        "Compost from the town's gardens is sold at the yard in Mill Lane, by the bag or by the cart.",
        ["Where do I buy soil for my flower beds?", "bags of compost"],
    ),
    (
        "Hedgehogs that are awake in December are taken to Mrs Achterberg, Mill Lane 12, who cares for wild animals.",
        ["Achterberg", "wild animal care", "hedgehogs in the houses and gardens of the town"],
    ),
    (
        "The kindergarten takes children from the age of three. Registration is in February for the coming school "
        "year; places are given by lot.",
        ["How do I enrol my toddler?", "kindergartens", "drawing lots for places"],
    ),
    (
        "School lunches are ordered a week ahead. Tell the kitchen of allergies; there is always a meal without meat.",
        ["ordering a lunch", "allergic children in the kitchen"],
    ),
    (
        "The music school teaches piano, violin, trumpet and singing. Instruments are hired out for the first year.",
        ["Violins for beginners", "Learning to play an instrument", "trumpet", "the piano in a house of the town"],
    ),
    (
        "The market is held on Wednesdays and Saturdays from seven until one. Stalls are let by the market master; "
        "whoever sells mushrooms needs the certificate of an expert.",
        ["Where do farmers sell their produce?", "certificates of mushroom experts", "renting a stall"],
    ),
    (
        "The museum of clocks shows eleven hundred timepieces, among them Varrick's tower clock of 1587. It is closed "
        "on Mondays.",
        ["Varrick", "a museum of the town on Mondays, with clocks", "closing day of the museum"],
    ),
    (
        "The church tower can be climbed on Sundays after noon: two hundred and six steps, and a view of the whole "
        "valley.",
        ["climbing the tower steps"],
    ),
    (
        "The fire brigade is looking for volunteers between eighteen and fifty. Training is on Thursday evenings.",
        ["training volunteers"],
    ),
    (
        "Sirens are tested on the first Saturday of a month at noon: a steady tone for twelve seconds. A tone that "
        "rises and falls means danger: go inside and turn on the radio.",
        [
            "What does a wailing alarm mean?",
            "testing the siren",
            "siren of the town hall on Saturday at noon, first tone",
        ],
    ),
    (
        "Lost property is kept for six months at the police station; bicycles and umbrellas are auctioned in June.",
        ["auction of umbrellas", "umbrellas in the town hall at six in the morning"],
    ),
    (
        "Noise is forbidden from ten at night until six in the morning and on Sundays. Lawn mowers rest between noon "
        "and two as well.",
        ["mowing the lawn at noon"],
    ),
    (
        "The doctor on duty at weekends is named in the newspaper; the pharmacy on duty hangs on every pharmacy's "
        "door.",
        ["doctors on duty"],
    ),
    (
        "Blood can be given in the hospital on the last Tuesday of each month. Eat and drink enough before.",
        ["donating blood", "What should I do before I donate?"],
    ),
    (
        "The town council meets in public on the first Thursday of a month. Citizens may ask questions in the first "
        "half hour; the minutes are kept in the town archive.",
        ["minutes of the council's meeting"],
    ),
    (
        "The town archive keeps documents since 1312. Reading is by appointment; copies cost half a crown a page.",
        ["archives, appointments"],
    ),
    (
        "Street lamps that do not burn are reported by the number on the pole, for example by the code L-0442.",
        ["L-0442", "lamps at night on the bus line of the town", "broken street lamps"],
    ),
    (
        "Electric cars are charged at the river car park and behind the town hall; the first hour is free.",
        ["charging electric cars"],
    ),
    (
        "The ferry across the Oder carries people and bicycles, not cars, from April to October. When the water is "
        "high it rests.",
        ["ferries", "high water on the river"],
    ),
    (
        "Fishing in the town's waters needs a state licence and a day ticket, sold at the baker's in Bridge Street. "
        "Pike are closed until the first of May.",
        [
            "Am I allowed to catch trout?",
            "ticket for a day of fishing",
            "pike season",
            "pike in the waters of the town in April",
        ],
    ),
    (
        "The town at a glance: the town hall, the library, the market, the water works, the swimming bath, the school, "
        "the kindergarten, the hospital, the railway station, the museum, the church, the archive, the police station, "
        "the fire brigade and the river car park all lie within the town's walls. The town hall is the oldest house of "
        "the town, the water works is the youngest. Every house of the town has water from the town's water works, and "
        "every house pays the town for its water. Buses of the town stop at the town hall, at the market, at the "
        "hospital and at the railway station. The town has eleven thousand people, nine hundred dogs, forty gardens, "
        "seven bridges over the river and one night bus.",
        ["How many inhabitants are there?"],
    ),
    (
        "Opening hours: the town hall is open from eight until noon on working days and until six on Thursdays, the "
        "library from ten until six, the museum from ten until five, the swimming bath from nine until eight, the yard "
        "in Mill Lane from seven until three. On Sundays the town hall, the library and the yard are closed. Children "
        "enter the museum and the swimming bath at half the price, dogs do not enter at all, and bicycles are left at "
        "the door. In winter the church, the tower and the ferry are closed, and so is the outdoor pool.",
        ["When can I go to the offices after work?"],
    ),
]

_ROOMS: Sequence[tuple[str, Sequence[str]]] = [
    ("Room 114 of the town hall: Mr Tollund, fees for stalls.", ["room 114", "Who is Mr Tollund?"]),
    ("Room 117 of the town hall: Ms Farrow, fees for schools.", ["room 117", "Ms Farrow"]),
    ("Room 121 of the town hall: Mr Quill, fees for burials.", ["room 121", "fees that Mr Quill takes"]),
    ("Room 141 of the town hall: Ms Okafor, fees for parking.", ["room 141", "Who is Ms Okafor?"]),
    ("Room 147 of the town hall: Mr Lindqvist, fees for moorings.", ["room 147", "Mr Lindqvist"]),
    ("Room 171 of the town hall: Ms Brandt, fees for gardens.", ["room 171", "Where is Ms Brandt's room?"]),
    ("Room 174 of the town hall: Mr Sorel, fees for weddings.", ["room 174", "Who is Mr Sorel?"]),
    ("Room 211 of the town hall: Ms Adeyemi, fees for signs.", ["room 211", "Ms Adeyemi"]),
    ("Room 214 of the town hall: Mr Haldane, fees for chimneys.", ["room 214", "fees that Mr Haldane takes"]),
    ("Room 217 of the town hall: Ms Kovac, fees for scaffolds.", ["room 217", "Who is Ms Kovac?"]),
    ("Room 241 of the town hall: Mr Ferro, fees for wells.", ["room 241", "Mr Ferro"]),
    ("Room 247 of the town hall: Ms Yilmaz, fees for bridges.", ["room 247", "Where is Ms Yilmaz's room?"]),
    ("Room 271 of the town hall: Mr Pascoe, fees for horses.", ["room 271", "Who is Mr Pascoe?"]),
    ("Room 274 of the town hall: Ms Iversen, fees for boats.", ["room 274", "Ms Iversen"]),
]

_TONGUES: Sequence[tuple[str, Sequence[str]]] = [
    ("Die Bäume in der Allee werden im Herbst geschnitten.", ["Wann schneidet man einen Baum?"]),
    ("Die Häuser am Fluss haben neue Fenster und eine Heizung bekommen.", ["Fenster des Hauses"]),
    ("Der Zug nach Norden fährt von Gleis drei.", ["Züge in den Norden"]),
    ("Los niños de la escuela aprenden canciones antiguas.", ["¿Qué canción aprende un niño?"]),
    ("Las casas del puerto tienen balcones pintados de azul.", ["el balcón de la casa"]),
    ("El panadero vende pan recién hecho cada mañana.", ["¿Dónde se venden panes?"]),
    ("Les chevaux de la ferme mangent du foin tout l'hiver.", ["Que mange un cheval à la ferme ?"]),
    ("Les ouvriers réparent les ponts de la rivière.", ["réparation du pont"]),
    ("Старые мосты через реку ремонтируют летом.", ["ремонт старого моста"]),
    ("В библиотеке хранятся редкие книги и карты.", ["Где хранится редкая книга?"]),
    ("図書館は月曜日が休みです。", ["図書館の休みはいつですか"]),
    ("駅前の広場で朝市が開かれます。", ["朝市はどこですか"]),
    ("川の水位が高いときは渡し船は運休します。", ["渡し船の運休"]),
    ("市政厅的护照窗口每天上午开放。", ["护照窗口什么时候开放？"]),
    ("孩子们在音乐学校学习小提琴。", ["在哪里学小提琴"]),
    ("พิพิธภัณฑ์นาฬิกาปิดวันจันทร์", ["นาฬิกาพิพิธภัณฑ์"]),
    ("Τα παλιά ρολόγια του μουσείου δουλεύουν ακόμη.", ["ρολόι μουσείου"]),
    ("The STRASSE of the old maps is today's Bridge Street; ﬁsh was sold there.", ["fish", "straße"]),
]

_ALSO: Mapping[str, Mapping[str, int]] = {
    "Where can tourists leave their vehicle?": {"h40": 1},
    "closing day of the museum": {"h41": 1},
    "buses to the hospital on Sunday": {"h40": 1},
    "stops of the night bus": {"h13": 1},
    "high water on the river": {"h07": 1},
}
"""What answers less well beside a question's own document, whose grade is 2 then."""


def handbook() -> Corpus:
    """English, for every strategy."""
    return _corpus("handbook", "h", [*_HANDBOOK, *_ROOMS])


def tongues() -> Corpus:
    """Several languages and scripts, for searches by terms."""
    return _corpus("tongues", "t", _TONGUES)


def _corpus(name: str, letter: str, texts: Sequence[tuple[str, Sequence[str]]]) -> Corpus:
    documents = {f"{letter}{number:02}": text for number, (text, _) in enumerate(texts)}
    asked = [
        (question, document)
        for document, (_, questions) in zip(documents, texts, strict=True)
        for question in questions
    ]
    return Corpus(
        name=name,
        documents=documents,
        questions={question: question for question, _ in asked},
        judgments={question: _grades(question, document) for question, document in asked},
    )


def _grades(question: str, document: str) -> dict[str, int]:
    also = _ALSO.get(question, {})
    return {document: 2 if also else 1, **also}
